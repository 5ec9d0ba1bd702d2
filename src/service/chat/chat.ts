import { anthropicMarksElsewhere } from "../../engines/anthropic/anthropic-request.js";
import { type UpstreamAnswer, UpstreamError } from "../../engines/upstream/upstream.js";
import { type HeaderPair, withAdded } from "../../engines/upstream/upstream-headers.js";
import { inCallSpan } from "../base/spans.js";
import type { ComposeAnswer } from "../compose/compose-answer.js";
import type { ColdHead } from "../compose/prompt-planner.js";
import type { DeletionWatch } from "../scopes/deletions-meanwhile.js";
import { AdaptiveDepth } from "./adaptive-depth.js";
import { CallAhead } from "./call-ahead.js";
import type { ChatAnswer, ChatMemory, ChatParts, ChatRequest } from "./chat-request.js";
import { type ChatPrompt, composeInTime, type NotComposedReason } from "./composing-in-time.js";
import { ExchangeReading } from "./exchange.js";
import { isEventStream, judgeAnswer } from "./judged-answer.js";
import { ObservedAnswer } from "./observed-answer.js";
import { KnownTerms, type PromptTerms, termsAfter } from "./prompt-terms.js";
import { UsageAsking } from "./usage-asking.js";
import { WarmUp } from "./warm-up.js";

export type { UpstreamAnswer as EngineAnswer } from "../../engines/upstream/upstream.js";
export { type HeaderPair, headerPairs } from "../../engines/upstream/upstream-headers.js";
export type { ChatAnswer, ChatEngine, ChatParts, ChatRequest } from "./chat-request.js";

const COMPOSE_TIMEOUT_MS = 5_000;
/** The composed prompt, another form of it, and the client's own messages. */
const MOST_SENDS = 3;

/**
 * Stands between a chat client and its engine: composes the prompt with the user's memories, sends it on, hands the answer through as it
 * comes, and learns from it what the engine had cached. The client's own fields and headers win over memstem's.
 */
export class Chat {
  readonly #usage: UsageAsking;

  readonly #warmUp: WarmUp | null;

  readonly #depth: AdaptiveDepth;

  readonly #terms: KnownTerms;

  readonly #exchanges: ExchangeReading;

  constructor(private readonly parts: ChatParts) {
    this.#usage = new UsageAsking(parts.clock);
    this.#warmUp = parts.warmUp === true ? new WarmUp(parts.upstream, parts.clock) : null;
    this.#terms = new KnownTerms(parts.clock);
    this.#exchanges = new ExchangeReading(parts);
    this.#depth = new AdaptiveDepth({ ...parts, configured: parts.adaptiveDepth ?? null });
  }

  /** The engine's models, as it lists them. Rejects with {@link UpstreamError}. */
  models(query: string, headers: readonly HeaderPair[], signal: AbortSignal): Promise<UpstreamAnswer> {
    return this.parts.upstream.send({ method: "GET", path: "models", query, headers, body: null }, signal);
  }

  /**
   * Rejects with {@link UpstreamError} where the engine does not answer, and with what the request itself did wrong. Where it cannot be
   * composed for any other reason, it goes on as it came.
   *
   * @param memstem the caller's tenant
   * @param signal the client is gone
   */
  async complete(memstem: ChatMemory, request: ChatRequest, signal: AbortSignal): Promise<ChatAnswer> {
    const watch = this.#watch(memstem, request);
    const { composed, notComposed, sent } = await this.#untilTaken(memstem, request, signal);
    const { answer, asksUsage, started } = sent;
    try {
      if (answer.status >= 300) {
        this.#neverServed(memstem, request, composed);
        return { ...answer, composed, notComposed, usage: null };
      }
      const exchange = { memstem, request, watch, composed, started, observed: new ObservedAnswer() };
      if (headerOf(answer, "content-encoding") !== null) return { ...answer, composed, notComposed, usage: null };
      if (isEventStream(answer)) {
        return {
          ...answer,
          body: this.#exchanges.stream(answer, exchange, asksUsage),
          composed,
          notComposed,
          usage: null,
        };
      }
      return { ...(await this.#exchanges.whole(answer, exchange)), composed, notComposed };
    } catch (error) {
      // Where the client went away meanwhile, the engine may have computed the prompt.
      if (error instanceof UpstreamError && error.failure.kind !== "aborted")
        this.#neverServed(memstem, request, composed);
      throw error;
    }
  }

  /** Null where the store cannot say: then the exchange is not kept, and the chat goes on. Composing meets the same fault, and says it. */
  #watch(memstem: ChatMemory, { userId }: ChatRequest): DeletionWatch | null {
    try {
      return memstem.watchDeletions(userId);
    } catch {
      return null;
    }
  }

  /**
   * Sends a request's prompt; where the engine refuses it as it is, once in another form, and then the client's own messages. The client has
   * seen nothing of that. A prompt that was refused counts as never composed.
   */
  async #untilTaken(memstem: ChatMemory, request: ChatRequest, signal: AbortSignal): Promise<Attempt> {
    const of = { tenant: memstem, userId: request.userId, model: request.body["model"] };
    let terms = this.#terms.of(of);
    let attempt = await this.#attempt(memstem, request, terms, signal);
    if (attempt.composed === null) return attempt;
    for (let sends = 1; ; sends++) {
      const { composed, sent }: Attempt = attempt;
      const { refusal, answer, end } = await judgeAnswer(sent.answer).catch((error: unknown) => {
        this.#neverServed(memstem, request, composed);
        throw error;
      });
      attempt = { ...attempt, sent: { ...sent, answer } };
      const next = refusal === null || composed === null ? null : termsAfter(refusal, composed, terms);
      if (refusal === null || composed === null || next === null) {
        // Where it refuses the client's own messages, too, it is not asked to take more.
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
    memstem: ChatMemory,
    request: ChatRequest,
    terms: PromptTerms,
    signal: AbortSignal,
    isRepeated = false,
  ): Promise<Attempt> {
    const ahead = new CallAhead<Sent>(signal);
    const prompt = await this.#compose(memstem, request, terms, isRepeated, signal, ahead);
    const { composed, notComposed } = prompt;
    if (notComposed !== null) this.parts.onNotComposed?.(notComposed);
    if (signal.aborted && ahead.answer === null) this.#neverServed(memstem, request, composed);
    try {
      const early = composed === null ? null : ahead.answer;
      const sent = await (early ?? this.#send(memstem, request, composed, signal));
      return { ...prompt, sent };
    } catch (error) {
      // Where the client went away meanwhile, the engine may have computed the prompt.
      if (error instanceof UpstreamError && error.failure.kind !== "aborted")
        this.#neverServed(memstem, request, composed);
      throw error;
    }
  }

  /** Whether a prompt that was refused counts as never composed. */
  async #withdraw(
    memstem: ChatMemory,
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
    memstem: ChatMemory,
    request: ChatRequest,
    notComposed: NotComposedReason,
    signal: AbortSignal,
  ): Promise<Attempt> {
    this.parts.onNotComposed?.(notComposed);
    return { composed: null, notComposed, sent: await this.#send(memstem, request, null, signal) };
  }

  /** Composes a request's prompt, and begins to send it. What did not become an answer of it is given up. */
  async #compose(
    memstem: ChatMemory,
    request: ChatRequest,
    terms: PromptTerms,
    isRepeated: boolean,
    signal: AbortSignal,
    ahead: CallAhead<Sent>,
  ): Promise<ChatPrompt> {
    const { compose, body, isShed = false } = request;
    if (compose === null) return { composed: null, notComposed: "messages" };
    if (isShed) return { composed: null, notComposed: "lag" };
    const { onFault, composeTimeoutMs: timeoutMs = COMPOSE_TIMEOUT_MS } = this.parts;
    const warmUp = isRepeated ? null : this.#warmUp;
    const whileSearching = warmUp === null ? undefined : (head: ColdHead) => warmUp.start(memstem, request, head);
    const depth = isRepeated ? undefined : this.#depth.chooserFor(memstem, request, request.adaptiveDepth ?? null);
    const wished = isRepeated ? null : compose.toolMemories;
    const asked = {
      ...compose,
      ...terms,
      toolMemories: wished ?? terms.toolMemories,
      marksElsewhere: anthropicMarksElsewhere(body),
    };
    const beforeStored = (prompt: ComposeAnswer) => ahead.begin((stop) => this.#send(memstem, request, prompt, stop));
    const composing = (stop: AbortSignal) =>
      memstem.compose(asked, stop, { whileSearching, chooseDepth: depth?.choose(stop), beforeStored });
    let prompt: ChatPrompt | null = null;
    try {
      prompt = await composeInTime(composing, signal, {
        // What tries may take has a limit of its own, and was asked for.
        timeoutMs: timeoutMs + (depth?.timeLimitMs ?? 0),
        onFault,
        onLate: (answer) => this.#neverServed(memstem, request, answer),
      });
      return prompt;
    } finally {
      if (prompt?.composed == null) ahead.giveUp();
    }
  }

  async #send(
    memstem: ChatMemory,
    request: ChatRequest,
    composed: ComposeAnswer | null,
    signal: AbortSignal,
  ): Promise<Sent> {
    let started = this.parts.clock();
    const { body: own, query, userId, agentId, engine } = request;
    const body = {
      ...(composed?.engine.fields ?? memstem.fieldsWithoutPrompt(userId, agentId, engine ?? null)),
      ...own,
      ...(composed === null ? {} : { messages: composed.messages }),
    };
    const headers = withAdded(request.headers, composed?.engine.headers ?? {});
    const send = (sent: object) =>
      inCallSpan("memstem.engine", { "memstem.streamed": own["stream"] === true }, async (span) => {
        const upstream = {
          method: "POST",
          path: "chat/completions",
          query,
          headers,
          body: JSON.stringify(sent),
        } as const;
        started = this.parts.clock();
        const answer = await this.parts.upstream.send(upstream, signal);
        span.setAttribute("http.response.status_code", answer.status);
        return answer;
      });
    const { answer, asksUsage } = await this.#usage.send(memstem, own, body, send);
    return { answer, asksUsage, started };
  }

  /** The engine did not compute the prompt, so nothing is expected to hit on its account. */
  #neverServed(memstem: ChatMemory, { userId }: ChatRequest, composed: ComposeAnswer | null): void {
    if (composed !== null) memstem.evict([composed.requestId], userId).catch(this.parts.onFault);
  }
}

/** A prompt that was sent, and what came of it. */
interface Sent {
  readonly answer: UpstreamAnswer;
  /** Whether the usage was asked for where the client did not. */
  readonly asksUsage: boolean;
  /** When it was sent, in the clock's milliseconds. */
  readonly started: number;
}

/** A prompt, or why there is none, and what came of sending it. */
type Attempt = ChatPrompt & { readonly sent: Sent };

function headerOf({ headers }: UpstreamAnswer, wanted: string): string | null {
  return headers.find(([name]) => name === wanted)?.[1] ?? null;
}
