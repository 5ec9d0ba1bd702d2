/*
 * chat: the proxy between a chat client and its engine.
 * Enters: a chat completion, with memories composed where that is possible. Leaves: the engine's answer, streamed unmodified, and what it
 * teaches: usage, times, refusals, an exchange to remember. Fails open: a chat that cannot be composed goes to its engine unmodified.
 */

import { anthropicMarksElsewhere } from "../../engines/anthropic/anthropic-request.js";
import { OutdatedCallError } from "../../engines/upstream/sending.js";
import { type UpstreamAnswer, type UpstreamCall, UpstreamError } from "../../engines/upstream/upstream.js";
import { type HeaderPair, withAdded } from "../../engines/upstream/upstream-headers.js";
import { inClientSpan } from "../base/spans.js";
import type { ComposeAnswer } from "../compose/compose-answer.js";
import type { ComposeHooks } from "../compose/compose-hooks.js";
import type { ColdHead } from "../compose/prompt-drafts.js";
import type { DeletionWatch } from "../scopes/deletion-watch.js";
import { AdaptiveDepth } from "./adaptive-depth.js";
import { formatOf } from "./chat-format.js";
import type { ChatComposer, ChatParts, ChatRequest, ProxiedAnswer } from "./chat-request.js";
import { type ChatPrompt, composeWithTimeout, type NotComposedReason } from "./compose-with-timeout.js";
import { EngineLimits } from "./engine-limits.js";
import { ExchangeReader } from "./exchange.js";
import { constraintsAfter, KnownConstraints, type PromptConstraints } from "./prompt-constraints.js";
import { checkForRefusal, isEventStream } from "./refusal-check.js";
import { withSessionKey } from "./session-key.js";
import { SpeculativeCall } from "./speculative-call.js";
import { StreamUsage } from "./stream-usage.js";
import { WarmUp } from "./warm-up.js";

export { chatOfMessages } from "../../engines/anthropic/messages-as-chat.js";
export type { UpstreamAnswer as EngineAnswer } from "../../engines/upstream/upstream.js";
export { CREDENTIAL_HEADERS, type HeaderPair, headerPairs } from "../../engines/upstream/upstream-headers.js";
export { MESSAGES } from "./chat-format.js";
export { type ChatEngine, type ChatParts, type ChatRequest, NOBODY, type ProxiedAnswer } from "./chat-request.js";

const COMPOSE_TIMEOUT_MS = 5_000;
/** The composed prompt, a second form of it, and the client's own messages. */
const MOST_SENDS = 3;

/**
 * Proxies chat completions: composes the prompt with the user's memories, sends it to the engine, streams the answer back, and reads from it
 * what the engine had cached. The client's own fields and headers win over memstem's.
 */
export class Chat {
  readonly #usage: StreamUsage;

  readonly #warmUp: WarmUp | null;

  readonly #depth: AdaptiveDepth;

  readonly #terms: KnownConstraints;

  readonly #exchanges: ExchangeReader;

  readonly #limits: EngineLimits;

  constructor(private readonly parts: ChatParts) {
    this.#usage = new StreamUsage(parts.clock);
    this.#warmUp = parts.warmUp === true ? new WarmUp(parts.upstream, parts.clock) : null;
    this.#terms = new KnownConstraints(parts.clock);
    this.#exchanges = new ExchangeReader(parts);
    this.#limits = new EngineLimits(parts.upstream, parts.contextLimit ?? null, parts.clock);
    this.#depth = new AdaptiveDepth({ ...parts, configured: parts.adaptiveDepth ?? null });
  }

  /** The engine's models, as it lists them. Rejects with {@link UpstreamError}. */
  models(query: string, headers: readonly HeaderPair[], signal: AbortSignal): Promise<UpstreamAnswer> {
    return this.parts.upstream.send({ method: "GET", path: "models", query, headers, body: null }, signal);
  }

  /** Passes a call of Anthropic's token count on. Rejects with {@link UpstreamError}. */
  countTokens(asked: Omit<UpstreamCall, "method" | "path">, signal: AbortSignal): Promise<UpstreamAnswer> {
    return this.parts.upstream.send({ ...asked, method: "POST", path: "messages/count_tokens" }, signal);
  }

  /**
   * Rejects with {@link UpstreamError} where the engine does not answer, with the error of an invalid request, and, before anything was sent,
   * where {@link ChatRequest.readSince} is outdated. A request that cannot be composed for any other reason goes to the engine unmodified.
   *
   * @param memstem the caller's tenant
   * @param signal aborts when the client disconnects
   */
  async complete(memstem: ChatComposer, asked: ChatRequest, signal: AbortSignal): Promise<ProxiedAnswer> {
    const request = withSessionKey(memstem, this.#withDestination(memstem, asked), this.parts.router ?? null);
    // Before anything is looked up: what is deleted from then on may be quoted in the exchange.
    const isKept = request.writeBack ?? this.parts.writeBack;
    const watch = isKept ? await this.#watch(memstem, request) : null;
    const { composed, notComposed, sent } = await this.#untilTaken(memstem, request, signal);
    const { answer, isUsageAdded, started } = sent;
    try {
      if (answer.status >= 300) {
        this.#neverServed(memstem, request, composed);
        return { ...answer, composed, notComposed, usage: null };
      }
      this.#limits.answered(request);
      const observed = formatOf(request).answerReader();
      const exchange = { memstem, request, watch, composed, started, observed };
      if (headerOf(answer, "content-encoding") !== null) return { ...answer, composed, notComposed, usage: null };
      if (isEventStream(answer)) {
        return {
          ...answer,
          body: this.#exchanges.stream(answer, exchange, isUsageAdded),
          composed,
          notComposed,
          usage: null,
        };
      }
      return { ...(await this.#exchanges.whole(answer, exchange)), composed, notComposed };
    } catch (error) {
      // If the client disconnected, the engine may have computed the prompt.
      if (error instanceof UpstreamError && error.failure.kind !== "aborted")
        this.#neverServed(memstem, request, composed);
      throw error;
    }
  }

  /** The request with what is known of its engine. */
  #withDestination({ countTokens }: ChatComposer, request: ChatRequest): ChatRequest {
    const { compose } = request;
    if (compose === null) return request;
    return { ...request, compose: { ...compose, destination: this.#limits.destinationOf(request, countTokens) } };
  }

  /** Null where the store fails: then the exchange is not remembered, and the chat continues. Composing reports the same fault. */
  async #watch(memstem: ChatComposer, { userId }: ChatRequest): Promise<DeletionWatch | null> {
    try {
      return await memstem.watchDeletions(userId);
    } catch {
      return null;
    }
  }

  /**
   * Sends a request's prompt; where the engine refuses it, a second form of it, then the client's own messages. The client notices nothing. A
   * refused prompt is withdrawn: it counts as never composed.
   */
  async #untilTaken(memstem: ChatComposer, request: ChatRequest, signal: AbortSignal): Promise<Attempt> {
    const of = { tenant: memstem, userId: request.userId, model: request.body["model"] };
    const known = this.#terms.of(of);
    let terms = { ...known, toolMemories: known.toolMemories ?? this.#limits.toolMemoriesOf(request) };
    let attempt = await this.#attempt(memstem, request, terms, signal);
    if (attempt.composed === null) return attempt;
    for (let sends = 1; ; sends++) {
      const { composed, sent }: Attempt = attempt;
      const { refusal, answer, end } = await checkForRefusal(sent.answer).catch((error: unknown) => {
        this.#neverServed(memstem, request, composed);
        throw error;
      });
      attempt = { ...attempt, sent: { ...sent, answer } };
      const next =
        refusal === null || composed === null
          ? null
          : constraintsAfter(refusal, composed, terms, request.compose?.history);
      if (refusal === null || composed === null || next === null) {
        // An engine that refuses the client's own messages as well teaches nothing.
        if (sends > 1 && (answer.status < 300 || refusal !== null)) this.#terms.learn(of, terms);
        return attempt;
      }
      terms = next;
      await end?.();
      const isGone = await this.#withdraw(memstem, request, composed);
      attempt =
        isGone && sends < MOST_SENDS - 1
          ? await this.#attempt(memstem, request, terms, signal, true)
          : await this.#sendPlain(memstem, request, refusal.kind, signal);
    }
  }

  /** Composes a prompt and sends it. */
  async #attempt(
    memstem: ChatComposer,
    request: ChatRequest,
    terms: PromptConstraints,
    signal: AbortSignal,
    isRepeated = false,
  ): Promise<Attempt> {
    const ahead = new SpeculativeCall<Sent>(signal);
    let watch: DeletionWatch | null = null;
    const isCurrent = async () => watch === null || (await watch.isSendable());
    const prompt = await this.#compose(memstem, request, terms, isRepeated, signal, {
      planned: (known) => {
        watch = known;
      },
      beforeStored: (planned) => ahead.start((stop) => this.#send(memstem, request, planned, stop, isCurrent)),
    }).catch((error: unknown) => {
      ahead.cancel();
      throw error;
    });
    const { composed, notComposed } = prompt;
    // A prompt whose user was deleted after it was sent has its answer, and is not sent again.
    const isSent = composed !== null || notComposed === "deleted";
    if (!isSent) ahead.cancel();
    if (notComposed !== null) this.parts.onNotComposed?.(notComposed);
    if (signal.aborted && ahead.answer === null) this.#neverServed(memstem, request, composed);
    try {
      const early = isSent ? ahead.answer : null;
      const sent = await (early ?? this.#send(memstem, request, composed, signal, isCurrent));
      return { ...prompt, sent };
    } catch (error) {
      if (error instanceof OutdatedCallError && composed !== null) {
        await this.#withdraw(memstem, request, composed);
        return isRepeated
          ? this.#sendPlain(memstem, request, "fault", signal)
          : this.#attempt(memstem, request, terms, signal, true);
      }
      // If the client disconnected, the engine may have computed the prompt.
      if (error instanceof UpstreamError && error.failure.kind !== "aborted")
        this.#neverServed(memstem, request, composed);
      throw error;
    }
  }

  /** Withdraws a refused prompt. False where that failed. */
  async #withdraw(
    memstem: ChatComposer,
    { userId, agentId }: ChatRequest,
    { requestId }: ComposeAnswer,
  ): Promise<boolean> {
    try {
      await memstem.withdraw(userId, agentId, requestId);
      return true;
    } catch (error) {
      this.parts.onFault(error);
      return false;
    }
  }

  async #sendPlain(
    memstem: ChatComposer,
    request: ChatRequest,
    notComposed: NotComposedReason,
    signal: AbortSignal,
  ): Promise<Attempt> {
    this.parts.onNotComposed?.(notComposed);
    return { composed: null, notComposed, sent: await this.#send(memstem, request, null, signal) };
  }

  /** Composes a request's prompt. */
  async #compose(
    memstem: ChatComposer,
    request: ChatRequest,
    terms: PromptConstraints,
    isRepeated: boolean,
    signal: AbortSignal,
    hooks: Pick<ComposeHooks, "planned" | "beforeStored">,
  ): Promise<ChatPrompt> {
    const { compose, body, isShed = false } = request;
    if (compose === null) return { composed: null, notComposed: request.notWanted ?? "messages" };
    if (isShed) return { composed: null, notComposed: "lag" };
    const { onFault, composeTimeoutMs: timeoutMs = COMPOSE_TIMEOUT_MS } = this.parts;
    const warmUp = isRepeated ? null : this.#warmUp;
    const whileSearching = warmUp === null ? undefined : (head: ColdHead) => warmUp.start(memstem, request, head);
    const depth = isRepeated ? undefined : this.#depth.chooserFor(memstem, request, request.adaptiveDepth ?? null);
    const wished = isRepeated ? null : (compose.toolMemories ?? this.parts.toolMemories);
    const asked = {
      ...compose,
      ...terms,
      toolMemories: wished ?? terms.toolMemories,
      marksElsewhere: anthropicMarksElsewhere(body),
    };
    const composing = (stop: AbortSignal) =>
      memstem.compose(asked, stop, {
        ...hooks,
        whileSearching,
        chooseDepth: depth?.choose(stop),
        readSince: request.readSince ?? undefined,
      });
    return composeWithTimeout(composing, signal, {
      // Depth probes have a time-out of their own, on top.
      timeoutMs: timeoutMs + (depth?.timeLimitMs ?? 0),
      onFault,
      onLate: (answer) => this.#neverServed(memstem, request, answer),
    });
  }

  /** @param isCurrent whether a composed prompt may still be sent, where time has passed since it was composed, or sent first */
  async #send(
    memstem: ChatComposer,
    request: ChatRequest,
    composed: ComposeAnswer | null,
    signal: AbortSignal,
    isCurrent: () => Promise<boolean> = async () => true,
  ): Promise<Sent> {
    const { readSince = null } = request;
    // A history that memstem read may be sent as it is long after it was read.
    const isPlain = composed === null;
    const maySend = isPlain ? readSince && (() => isUndeletedSince(readSince)) : isCurrent;
    let started = this.parts.clock();
    const { body: own, query, userId, agentId, engine } = request;
    const format = formatOf(request);
    const body = {
      ...(composed?.engine.fields ?? memstem.fieldsWithoutPrompt(userId, agentId, engine ?? null)),
      ...format.bodyOf(own, composed?.messages ?? null),
    };
    const headers = withAdded(request.headers, composed?.engine.headers ?? {});
    let isAgain = false;
    const send = (sent: object) =>
      inClientSpan("memstem.engine", { "memstem.streamed": own["stream"] === true }, async (span) => {
        const upstream = {
          method: "POST",
          path: format.path,
          query,
          headers,
          body: JSON.stringify(sent),
          ...(maySend === null ? {} : { isCurrent: maySend }),
        } as const;
        if ((isAgain || isPlain) && maySend !== null && !(await maySend())) throw new OutdatedCallError();
        isAgain = true;
        started = this.parts.clock();
        const answer = await this.parts.upstream.send(upstream, signal);
        span.setAttribute("http.response.status_code", answer.status);
        return answer;
      });
    if (!format.isChat) return { answer: await send(body), isUsageAdded: false, started };
    const { answer, isUsageAdded } = await this.#usage.send(memstem, own, body, send);
    return { answer, isUsageAdded, started };
  }

  /** The engine did not compute the prompt, so no hit is expected from it. */
  #neverServed(memstem: ChatComposer, { userId }: ChatRequest, composed: ComposeAnswer | null): void {
    if (composed !== null) memstem.evict([composed.requestId], userId).catch(this.parts.onFault);
  }
}

/** A prompt that was sent, and its answer. */
interface Sent {
  readonly answer: UpstreamAnswer;
  /** Whether memstem asked for the usage, where the client did not. */
  readonly isUsageAdded: boolean;
  /** When it was sent, in the clock's milliseconds. */
  readonly started: number;
}

/** A prompt, or why there is none, and the answer. */
type Attempt = ChatPrompt & { readonly sent: Sent };

/** Not so where the store says that something was deleted. Where it says nothing, chats go on. */
async function isUndeletedSince(watch: DeletionWatch): Promise<boolean> {
  return watch.isDeleted().then(
    (isDeleted) => !isDeleted,
    () => true,
  );
}

function headerOf({ headers }: UpstreamAnswer, wanted: string): string | null {
  return headers.find(([name]) => name === wanted)?.[1] ?? null;
}
