import type { JsonObject } from "../../core/text/json.js";
import { isEventStream } from "../../engines/upstream/answer-body.js";
import { type UpstreamAnswer, UpstreamError, withAdded } from "../../engines/upstream/upstream.js";
import type { PlannedAnswer } from "../base/call-types.js";
import { linkedSignal } from "../base/linked-signal.js";
import { InferenceSpan, UNREAD } from "../base/spans.js";
import type { ExactExpectation } from "../learning/cache-readings.js";
import {
  bodyOf,
  type ChatComposer,
  type ChatParts,
  type ChatRequest,
  NOBODY,
  type ProxiedAnswer,
  withTools,
} from "./chat-request.js";
import type { ChatPrompt } from "./compose-with-timeout.js";
import { modelName } from "./engine-limits.js";
import { Exchange, type StreamUsage } from "./exchange.js";
import type { WriteCall } from "./write-calls.js";

export interface AttemptParts {
  readonly parts: ChatParts;
  readonly usage: StreamUsage;
  readonly memprefix: ChatComposer;
  readonly request: ChatRequest;
  readonly signal: AbortSignal;
}

/** One prompt on its way to the engine: composed, or the client's own messages. */
export class Attempt {
  #started: number;
  #sending: Promise<SentPrompt> | null = null;
  /** Aborts when the client leaves, or the prompt that was sent ahead is not stored. */
  readonly #stop;
  #span: InferenceSpan | null = null;
  /** The prompt's cached tokens by the engine's events; null without events. */
  #exact: Promise<ExactExpectation | null> | null = null;
  /** Mem0's own call; null: another prompt. */
  #write: WriteCall | null = null;

  constructor(
    private readonly on: AttemptParts,
    readonly prompt: ChatPrompt<PlannedAnswer>,
  ) {
    this.#started = on.parts.clock();
    this.#stop = linkedSignal(on.signal);
  }

  /** Sends the prompt while it is being stored: the engine's first token does not wait for the store. */
  sendAhead(): void {
    // The error is that of `send`.
    this.send().catch(() => undefined);
  }

  /** Stops a prompt that was sent ahead and not stored. */
  cancel(): void {
    this.#span?.fail("not_stored");
    this.#stop.abort();
  }

  /** Sends the prompt once. Rejects with {@link UpstreamError}; then no hit is expected from the prompt. */
  send(): Promise<SentPrompt> {
    this.#sending ??= this.#send();
    return this.#sending;
  }

  async #send(): Promise<SentPrompt> {
    const { parts, memprefix, request, usage, signal } = this.on;
    const { composed, notComposed } = this.prompt;
    if (notComposed !== null) parts.onNotComposed?.(notComposed);
    if (signal.aborted) this.neverServed();
    try {
      const { api, userId, agentId, engine = null } = request;
      const whose = userId === NOBODY ? null : userId;
      if (request.isWrite === true) this.#write = memprefix.writes.start(request);
      const fields =
        composed?.engine.fields ??
        memprefix.composer.plainFields(whose, agentId, { engine, model: modelName(request.body["model"]) });
      const sent = withTools(request, composed?.toolTexts ?? null);
      const body = this.#write?.body ?? { ...fields, ...bodyOf(sent, composed?.messages ?? null) };
      if (api.name !== "chat") return { answer: await this.#call(sent, body), isUsageAdded: false };
      this.#exact = this.#exactly(body);
      return await usage.send(memprefix, sent.body, body, (again) => this.#call(sent, again));
    } catch (error) {
      this.#failed(error);
      throw error;
    }
  }

  async passOn({ answer, isUsageAdded }: SentPrompt): Promise<ProxiedAnswer> {
    const { parts, memprefix, request } = this.on;
    const unread = { ...answer, ...this.prompt, expectedTokens: await this.#expectedTokens(), usage: null };
    const span = this.#span;
    if (answer.status >= 300) this.neverServed();
    if (answer.status >= 300 || span === null) return unread;
    if (answer.headers.some(([name]) => name === "content-encoding")) {
      span.end(UNREAD);
      return unread;
    }
    try {
      const { composed } = this.prompt;
      const exchange = new Exchange(parts, {
        ...{ memprefix, request, composed, started: this.#started, span },
        write: this.#write,
      });
      if (isEventStream(answer)) return { ...unread, body: exchange.stream(answer, isUsageAdded) };
      return { ...unread, ...(await exchange.whole(answer)) };
    } catch (error) {
      this.#failed(error);
      throw error;
    }
  }

  /** The engine refused the prompt, so it counts as never composed. False if withdrawing it failed. */
  async withdraw(refusal: string): Promise<boolean> {
    const { parts, memprefix, request } = this.on;
    const { composed } = this.prompt;
    this.#span?.fail(refusal);
    if (composed === null) return true;
    try {
      await memprefix.reports.withdraw(request.userId, request.agentId, composed.requestId);
      return true;
    } catch (error) {
      parts.onFault(error);
      return false;
    }
  }

  neverServed(): void {
    const { composed } = this.prompt;
    this.#write?.dropped();
    if (composed !== null) neverServed(this.on, composed);
  }

  /** Calls the engine in its own span; again if it refused what memprefix added. */
  async #call(request: ChatRequest, sent: JsonObject): Promise<UpstreamAnswer> {
    const { parts } = this.on;
    const { api, body: own, query, written } = request;
    const span = new InferenceSpan({
      engine: request.engine ?? parts.family?.() ?? "generic",
      server: parts.upstream.name,
      model: own["model"],
      conversationId: request.conversationId ?? request.compose?.conversationId ?? null,
      isStreamed: own["stream"] === true,
      headers: withAdded(request.headers, this.prompt.composed?.engine.headers ?? {}),
    });
    this.#span = span;
    return span.during(async () => {
      const call = { method: "POST", path: api.path, query, body: written(sent), isOnce: isOnce(own) } as const;
      this.#started = parts.clock();
      return parts.upstream.send({ ...call, headers: span.headers }, this.#stop.signal);
    });
  }

  /** What events say of a prompt that is about to be sent; the conversation's next prompt is planned with it. */
  #exactly(body: JsonObject): Promise<ExactExpectation | null> | null {
    const { parts, memprefix, request } = this.on;
    const { composed } = this.prompt;
    const knowing = composed === null ? undefined : parts.expectations?.of(body);
    if (composed === null || knowing === undefined) return null;
    const { userId, agentId } = request;
    const taken = knowing.then((exact) => {
      if (exact !== null) memprefix.composer.tokenized(userId, agentId, composed.requestId, exact);
      return exact;
    });
    // Nothing waits for it.
    return taken.catch((error: unknown) => {
      parts.onFault(error);
      return null;
    });
  }

  /** Expected cached tokens, in the engine's tokens; null: unknown. Does not wait for an engine that tokenizes more slowly than it answers. */
  async #expectedTokens(): Promise<number | null> {
    const { memprefix, request } = this.on;
    const { composed } = this.prompt;
    // The engine's cache of a history that it continues itself is unknown.
    if (composed === null || request.added !== undefined) return null;
    const known =
      this.#exact && (await Promise.race([this.#exact, new Promise<null>((now) => setImmediate(now, null))]));
    const of = { userId: request.userId, model: modelName(request.body["model"]) };
    return known?.cachedTokens() ?? memprefix.composer.engineTokens(composed.plan.expectedCachedTokens, of);
  }

  /** If the client disconnected, the engine may have computed the prompt. */
  #failed(error: unknown): void {
    const { memprefix, request } = this.on;
    const { composed } = this.prompt;
    if (this.#write !== null) this.neverServed();
    if (!(error instanceof UpstreamError) || composed === null) return;
    if (error.failure.kind !== "aborted") this.neverServed();
    else memprefix.reports.interrupted(request.userId, request.agentId, composed.requestId);
  }
}

export interface SentPrompt {
  readonly answer: UpstreamAnswer;
  /** Whether memprefix requested the usage, and the client did not. */
  readonly isUsageAdded: boolean;
}

/** The engine did not compute a prompt, so no hit is expected from it. */
export function neverServed({ memprefix, request, parts }: AttemptParts, { requestId }: PlannedAnswer): void {
  memprefix.reports.neverServed(request.userId, request.agentId, requestId).catch(parts.onFault);
}

/** Whether a body has effects at the engine, and so is sent only once: it adds to a stored conversation, or runs without a connection. */
export function isOnce({ conversation, background }: JsonObject): boolean {
  return conversation != null || background === true;
}
