/*
 * chat: the proxy between a client and its engine, for every API.
 * Enters: a request of one API, with memories composed where that is possible. Leaves: the engine's answer, byte for byte, and what it
 * teaches: usage, times, refusals, an exchange to remember. Fails open: a request that cannot be composed goes to its engine unmodified.
 */

import { DEFAULT_DEPTH, type Depth } from "../../core/index.js";
import type { JsonObject } from "../../core/text/json.js";
import { marksElsewhereIn } from "../../engines/adapters/engine-adapter.js";
import { routingOf, type SessionRouter } from "../../engines/adapters/session-routers.js";
import { isEventStream } from "../../engines/upstream/answer-body.js";
import {
  type HeaderPair,
  type UpstreamAnswer,
  type UpstreamCall,
  UpstreamError,
  withAdded,
} from "../../engines/upstream/upstream.js";
import type { ComposeAnswer } from "../base/call-types.js";
import { InferenceSpan, UNREAD } from "../base/spans.js";
import type { Drive } from "../compose/prompt-composer.js";
import type { ExactExpectation } from "../learning/engine-cache.js";
import { AdaptiveDepth } from "./adaptive-depth.js";
import {
  bodyOf,
  type ChatComposer,
  type ChatParts,
  type ChatRequest,
  NOBODY,
  type ProxiedAnswer,
} from "./chat-request.js";
import { type ChatPrompt, composeWithTimeout, type NotComposedReason } from "./compose-with-timeout.js";
import { withContinued } from "./continued-responses.js";
import {
  checkForRefusal,
  constraintsAfter,
  EngineLimits,
  KnownConstraints,
  modelName,
  type PromptConstraints,
} from "./engine-limits.js";
import { Exchange, StreamUsage } from "./exchange.js";
import { WarmUp } from "./warm-up.js";

export type { UpstreamAnswer as EngineAnswer } from "../../engines/upstream/upstream.js";
export { CREDENTIAL_HEADERS, type HeaderPair, headerPairs } from "../../engines/upstream/upstream.js";
export { type ChatEngine, type ChatParts, type ChatRequest, NOBODY, type ProxiedAnswer } from "./chat-request.js";

const COMPOSE_TIMEOUT_MS = 5_000;
/** The composed prompt, a second form of it, and the client's own messages. */
const MOST_SENDS = 3;
/** Statuses with which an engine says that it lacks a route; in JSON some are about what a request names. */
const ABSENT: ReadonlySet<number> = new Set([404, 405, 501]);

/** What is known of one engine, and what is done with its chats. */
class EngineChats {
  readonly usage: StreamUsage;
  readonly warmUp: WarmUp | null;
  readonly depth: AdaptiveDepth;
  readonly terms: KnownConstraints;
  readonly limits: EngineLimits;
  /** Paths that the engine was found not to have: those of the APIs, three at most. */
  readonly #absent = new Set<string>();

  constructor(readonly parts: ChatParts) {
    this.usage = new StreamUsage(parts.clock);
    this.warmUp = parts.warmUp === true ? new WarmUp(parts.upstream, parts.clock) : null;
    this.terms = new KnownConstraints(parts.clock);
    this.limits = new EngineLimits(parts.upstream, parts.readsLimit ?? false, parts.clock);
    this.depth = new AdaptiveDepth(parts);
  }

  /** Says once that the engine has no route for an API. */
  answered({ api }: ChatRequest, status: number): void {
    if (!ABSENT.has(status) || api.name === "chat" || this.#absent.has(api.path)) return;
    this.#absent.add(api.path);
    this.parts.onAbsentRoute?.(api.path);
  }
}

/**
 * Proxies requests of every API: composes the prompt with the user's memories, sends it to the engine, streams the answer back, and reads from
 * it what the engine had cached. The client's own fields and headers win over memprefix's.
 */
export class Chat {
  readonly #engine: EngineChats;

  constructor(private readonly parts: ChatParts) {
    this.#engine = new EngineChats(parts);
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
   * Rejects with {@link UpstreamError} where the engine does not answer, and with the error of an invalid request. A request that cannot be
   * composed for any other reason goes to the engine unmodified.
   *
   * @param memprefix the caller's tenant
   * @param signal aborts when the client disconnects
   */
  async complete(memprefix: ChatComposer, asked: ChatRequest, signal: AbortSignal): Promise<ProxiedAnswer> {
    const { limits, parts } = this.#engine;
    const { compose } = asked;
    // With what is known of its engine.
    const destined =
      compose === null
        ? asked
        : { ...asked, compose: { ...compose, destination: limits.destinationOf(asked, memprefix.countTokens) } };
    const request = withSessionKey(memprefix, await withContinued(memprefix, destined), parts.router ?? null);
    return new Completion(this.#engine, memprefix, request, signal).answered();
  }
}

/**
 * A request with its session's key for the router, as if the client had sent it, so that warm-ups and depth probes have it too. What the
 * client itself sent stays. A call that a client makes for itself has another prompt than its conversation: it gets no key, nor does a
 * request that names nobody. A request that names workers gets the headers of the one that memprefix chose.
 */
function withSessionKey({ composer }: ChatComposer, request: ChatRequest, router: SessionRouter | null): ChatRequest {
  const hasWorkers = (request.compose?.workers ?? []).length > 0;
  const hasNoKey = request.notWanted === "side_call" || request.userId === NOBODY;
  if (router === null || hasWorkers || hasNoKey) return request;
  const { userId, agentId, conversationId = request.compose?.conversationId ?? null } = request;
  const key = composer.sessionKey(userId, agentId, conversationId);
  const { headers, fields } = routingOf(router, request.api.path, key);
  return { ...request, headers: withAdded(request.headers, headers), body: { ...fields, ...request.body } };
}

/** One request, until the engine answers. */
class Completion {
  constructor(
    private readonly engine: EngineChats,
    private readonly memprefix: ChatComposer,
    private readonly request: ChatRequest,
    private readonly signal: AbortSignal,
  ) {}

  async answered(): Promise<ProxiedAnswer> {
    const { memprefix, request } = this;
    const { parts, limits } = this.engine;
    const { composed, notComposed, sent } = await this.#untilTaken();
    const { answer, isUsageAdded, started, span } = sent;
    const isContinued = request.added !== undefined;
    const expectedTokens = composed && !isContinued ? await this.#expectedOf(composed, sent) : null;
    const unread = { ...answer, composed, notComposed, expectedTokens, usage: null };
    this.engine.answered(request, answer.status);
    try {
      if (answer.status >= 300) {
        this.#neverServed(composed);
        return unread;
      }
      limits.answered(request);
      if (headerOf(answer, "content-encoding") !== null) {
        span.end(UNREAD);
        return unread;
      }
      const exchange = new Exchange(parts, { memprefix, request, composed, started, span });
      if (isEventStream(answer)) return { ...unread, body: exchange.stream(answer, isUsageAdded) };
      return { ...unread, ...(await exchange.whole(answer)) };
    } catch (error) {
      this.#failed(error, composed);
      throw error;
    }
  }

  /**
   * Sends a request's prompt; where the engine refuses it, a second form of it, then the client's own messages. The client sees no difference. A
   * refused prompt is withdrawn: it counts as never composed.
   */
  async #untilTaken(): Promise<Attempt> {
    const { request } = this;
    const { terms: allTerms, limits } = this.engine;
    const of = { tenant: this.memprefix, userId: request.userId, model: request.body["model"] };
    const known = allTerms.of(of);
    let terms = { ...known, inResult: known.inResult || limits.isInResult(request) };
    let attempt = await this.#attempt(terms);
    if (attempt.composed === null) return attempt;
    for (let sends = 1; ; sends++) {
      const { composed, sent }: Attempt = attempt;
      const { refusal, answer, end } = await checkForRefusal(sent.answer).catch((error: unknown) => {
        this.#neverServed(composed);
        throw error;
      });
      attempt = { ...attempt, sent: { ...sent, answer } };
      const next =
        refusal === null || composed === null
          ? null
          : constraintsAfter(refusal, composed, terms, request.compose?.history);
      if (refusal === null || composed === null || next === null) {
        // An engine that refuses the client's own messages as well teaches nothing.
        if (sends > 1 && (answer.status < 300 || refusal !== null)) allTerms.learn(of, terms);
        return attempt;
      }
      terms = next;
      sent.span.fail(refusal.kind);
      await end?.();
      const isGone = await this.#withdraw(composed);
      attempt =
        isGone && sends < MOST_SENDS - 1 ? await this.#attempt(terms, true) : await this.#sendPlain(refusal.kind);
    }
  }

  /** Composes a prompt and sends it. */
  async #attempt(terms: PromptConstraints, isRepeated = false): Promise<Attempt> {
    const { composed, notComposed } = await this.#compose(terms, isRepeated);
    if (notComposed !== null) this.engine.parts.onNotComposed?.(notComposed);
    if (this.signal.aborted) this.#neverServed(composed);
    try {
      return { composed, notComposed, sent: await this.#send(composed) };
    } catch (error) {
      this.#failed(error, composed);
      throw error;
    }
  }

  /** Withdraws a refused prompt. False where that failed. */
  async #withdraw({ requestId }: ComposeAnswer): Promise<boolean> {
    const { userId, agentId } = this.request;
    try {
      await this.memprefix.reports.withdraw(userId, agentId, requestId);
      return true;
    } catch (error) {
      this.engine.parts.onFault(error);
      return false;
    }
  }

  async #sendPlain(notComposed: NotComposedReason): Promise<Attempt> {
    this.engine.parts.onNotComposed?.(notComposed);
    return { composed: null, notComposed, sent: await this.#send(null) };
  }

  async #compose(terms: PromptConstraints, isRepeated: boolean): Promise<ChatPrompt<ComposeAnswer>> {
    const { memprefix, request } = this;
    const { parts, depth: depths } = this.engine;
    const { compose, body } = request;
    if (compose === null) return { composed: null, notComposed: request.notWanted ?? "messages" };
    const { onFault, composeTimeoutMs: timeoutMs = COMPOSE_TIMEOUT_MS } = parts;
    const warmUp = isRepeated ? null : this.engine.warmUp;
    const isDeep = request.adaptiveDepth ?? parts.adaptiveDepth != null;
    const depth = isRepeated || !isDeep ? null : (parts.adaptiveDepth ?? DEFAULT_DEPTH);
    const asked = { ...compose, ...terms, marksElsewhere: marksElsewhereIn(body) };
    const driving =
      (stop: AbortSignal): Drive =>
      async (composing) => {
        const head = warmUp && (await composing.coldHead());
        const endWarmUp = head && warmUp?.start(memprefix, request, head);
        const retrieved = await composing.retrieve().finally(() => endWarmUp?.());
        const draft = (at: Depth | null) => composing.draft(retrieved, at);
        const isChosen = depth !== null && !stop.aborted;
        const chosen = isChosen ? await depths.choose(memprefix, request, depth, draft, stop) : null;
        return composing.store(retrieved, chosen);
      };
    const composing = (stop: AbortSignal) =>
      memprefix.composer.compose({ request: asked, signal: stop }, driving(stop));
    return composeWithTimeout(composing, this.signal, {
      // Depth probes have a time-out of their own, on top.
      timeoutMs: timeoutMs + (depth?.timeLimitMs ?? 0),
      onFault,
      onLate: (answer) => this.#neverServed(answer),
    });
  }

  /** What events say of a prompt that is about to be sent; the next one of its conversation is planned with it. */
  #exactly({ requestId }: ComposeAnswer, body: JsonObject): Sent["exact"] {
    const { userId, agentId } = this.request;
    return (
      this.engine.parts.expectations?.of(body).then((exact) => {
        if (exact !== null) this.memprefix.composer.tokenized(userId, agentId, requestId, exact);
        return exact;
      }) ?? null
    );
  }

  /** @param composed null: the client's own messages */
  async #send(composed: ComposeAnswer | null): Promise<Sent> {
    const { memprefix, request } = this;
    const { parts, usage } = this.engine;
    const { api, body: own, query, userId, agentId, engine = null } = request;
    let started = parts.clock();
    const fields =
      composed?.engine.fields ?? memprefix.composer.plainFields(userId === NOBODY ? null : userId, agentId, engine);
    const body = { ...fields, ...bodyOf(request, composed?.messages ?? null) };
    const headers = withAdded(request.headers, composed?.engine.headers ?? {});
    const isChat = api.name === "chat";
    const exact = composed === null || !isChat ? null : this.#exactly(composed, body);
    const inferring = {
      engine: engine ?? parts.family ?? "generic",
      server: parts.upstream.name,
      model: own["model"],
      conversationId: request.conversationId ?? request.compose?.conversationId ?? null,
      isStreamed: own["stream"] === true,
      headers,
    };
    let isAgain = false;
    let span = new InferenceSpan(inferring);
    const send = async (sent: JsonObject) => {
      if (isAgain) span = new InferenceSpan(inferring);
      return span.during(async () => {
        const call = {
          method: "POST",
          path: api.path,
          query,
          body: request.written(sent),
          isOnce: isOnce(own),
        } as const;
        isAgain = true;
        started = parts.clock();
        return parts.upstream.send({ ...call, headers: span.headers }, this.signal);
      });
    };
    const { answer, isUsageAdded } = isChat
      ? await usage.send(memprefix, own, body, send)
      : { answer: await send(body), isUsageAdded: false };
    return { answer, isUsageAdded, started, exact, span };
  }

  /** Waits for nothing: an engine that makes tokens of a prompt more slowly than it answers is not heard here. */
  async #expectedOf({ plan }: ComposeAnswer, { exact }: Sent): Promise<number> {
    const known = exact && (await Promise.race([exact, new Promise<null>((now) => setImmediate(now, null))]));
    const cached = known?.cachedTokens() ?? null;
    if (cached !== null) return cached;
    const { userId, body } = this.request;
    const of = { userId, model: modelName(body["model"]) };
    return this.memprefix.composer.engineTokens(plan.expectedCachedTokens, of);
  }

  /** If the client disconnected, the engine may have computed the prompt. */
  #failed(error: unknown, composed: ComposeAnswer | null): void {
    if (!(error instanceof UpstreamError)) return;
    if (error.failure.kind !== "aborted") this.#neverServed(composed);
    else if (composed !== null) {
      const { userId, agentId } = this.request;
      this.memprefix.reports.interrupted(userId, agentId, composed.requestId);
    }
  }

  /** The engine did not compute the prompt, so no hit is expected from it. */
  #neverServed(composed: ComposeAnswer | null): void {
    if (composed === null) return;
    const { userId, agentId } = this.request;
    this.memprefix.reports.neverServed(userId, agentId, composed.requestId).catch(this.engine.parts.onFault);
  }
}

/** A prompt that was sent, and its answer. */
interface Sent {
  readonly answer: UpstreamAnswer;
  /** Whether memprefix asked for the usage, where the client did not. */
  readonly isUsageAdded: boolean;
  /** When it was sent, in the clock's milliseconds. */
  readonly started: number;
  readonly span: InferenceSpan;
  /** What the engine's events say that it has cached of it; null where there are none. */
  readonly exact: Promise<ExactExpectation | null> | null;
}

/** A prompt, or why there is none, and the answer. */
type Attempt = Pick<ProxiedAnswer, "composed" | "notComposed"> & { readonly sent: Sent };

/**
 * Whether a body has effects at the engine, and so is never sent twice: what adds to a conversation of the engine's, or runs with nobody
 * connected.
 */
function isOnce({ conversation, background }: JsonObject): boolean {
  return conversation != null || background === true;
}

function headerOf({ headers }: UpstreamAnswer, wanted: string): string | null {
  return headers.find(([name]) => name === wanted)?.[1] ?? null;
}
