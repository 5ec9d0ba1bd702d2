/*
 * chat: the proxy between a client and its engine, for every API.
 * Enters: a request of one API. Leaves: the engine's answer, byte for byte, and what it reports: usage, times, refusals, an exchange to store.
 * Fails open: a request that cannot be composed goes to its engine unmodified.
 */

import { DEFAULT_DEPTH, type Depth } from "../../core/index.js";
import { marksElsewhereIn } from "../../engines/adapters/engine-adapter.js";
import { routingOf, type SessionRouter } from "../../engines/adapters/session-routers.js";
import { withAdded } from "../../engines/upstream/upstream.js";
import type { PlannedAnswer } from "../base/call-types.js";
import type { Drive } from "../compose/prompt-composer.js";
import { AdaptiveDepth } from "./adaptive-depth.js";
import { Attempt, type AttemptParts, isOnce, neverServed, type SentPrompt } from "./attempt.js";
import { type ChatComposer, type ChatParts, type ChatRequest, NOBODY, type ProxiedAnswer } from "./chat-request.js";
import { type ChatPrompt, composeWithTimeout } from "./compose-with-timeout.js";
import { withContinued } from "./continued-responses.js";
import {
  checkForRefusal,
  constraintsAfter,
  EngineLimits,
  KnownConstraints,
  type PromptConstraints,
} from "./engine-limits.js";
import { StreamUsage } from "./exchange.js";
import { WarmUp } from "./warm-up.js";

export type { UpstreamAnswer as EngineAnswer } from "../../engines/upstream/upstream.js";
export {
  CREDENTIAL_HEADERS,
  type HeaderPair,
  headerPairs,
  type UpstreamCall,
} from "../../engines/upstream/upstream.js";
export { type ChatEngine, type ChatParts, type ChatRequest, NOBODY, type ProxiedAnswer } from "./chat-request.js";

const COMPOSE_TIMEOUT_MS = 5_000;
/** The composed prompt, a second form of it, and the client's own messages. */
const MOST_SENDS = 3;
/** Statuses of a missing route; in JSON, some of them are about what the request names. */
const ABSENT: ReadonlySet<number> = new Set([404, 405, 501]);

/** Proxies requests of every API. The client's own fields and headers win over memprefix's. */
export class Chat {
  readonly usage: StreamUsage;
  readonly warmUp: WarmUp | null;
  readonly depth: AdaptiveDepth;
  readonly terms: KnownConstraints;
  readonly limits: EngineLimits;
  /** Whether prompts are sent while they are being stored. Not after one that could not be stored: it was sent in vain. */
  sendsAhead = true;
  /** Paths that the engine does not have: three at most. */
  readonly #absent = new Set<string>();

  constructor(readonly parts: ChatParts) {
    this.usage = new StreamUsage(parts.clock);
    this.warmUp = parts.warmUp === true ? new WarmUp(parts.upstream, parts.clock) : null;
    this.terms = new KnownConstraints(parts.clock);
    this.limits = new EngineLimits(parts.upstream, parts.readsLimit ?? false, parts.clock);
    this.depth = new AdaptiveDepth(parts);
  }

  /** Rejects with `UpstreamError`, and for an invalid request; else sends what cannot be composed unmodified. @param signal the client left */
  async complete(memprefix: ChatComposer, given: ChatRequest, signal: AbortSignal): Promise<ProxiedAnswer> {
    const { limits, parts } = this;
    // First, so that warm-ups and depth probes have the tenant's salts too.
    const asked = { ...given, body: memprefix.composer.salted(given.body) };
    const { compose } = asked;
    const destined =
      compose === null
        ? asked
        : { ...asked, compose: { ...compose, destination: limits.destinationOf(asked, memprefix.countTokens) } };
    const request = withSessionKey(memprefix, await withContinued(memprefix, destined), parts.router ?? null);
    return new Completion(this, memprefix, request, signal).answered();
  }

  /** Reports once that the engine has no route for the request's API. */
  answered(request: ChatRequest, status: number): void {
    const { api } = request;
    if (status < 300) this.limits.answered(request);
    if (!ABSENT.has(status) || api.name === "chat" || this.#absent.has(api.path)) return;
    this.#absent.add(api.path);
    this.parts.onAbsentRoute?.(api.path);
  }
}

/** Adds the session's key for the router, unless the client sent one or workers are named. Side calls and requests without a user get none. */
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
  readonly #on: AttemptParts;
  #ahead: Attempt | null = null;

  constructor(
    private readonly chat: Chat,
    private readonly memprefix: ChatComposer,
    private readonly request: ChatRequest,
    private readonly signal: AbortSignal,
  ) {
    const { parts, usage } = chat;
    this.#on = { parts, usage, memprefix, request, signal };
  }

  /** Sends the prompt; if refused, a second form of it, then the client's own messages. A refused prompt counts as never composed. */
  async answered(): Promise<ProxiedAnswer> {
    const { chat, request } = this;
    const of = { tenant: this.memprefix, userId: request.userId, model: request.body["model"] };
    const known = chat.terms.of(of);
    let terms = { ...known, inResult: known.inResult || chat.limits.isInResult(request) };
    let attempt = await this.#attempt(terms);
    for (let sends = 1; ; sends++) {
      let sent = await attempt.send();
      const { composed } = attempt.prompt;
      if (composed === null && sends === 1) return this.#passOn(attempt, sent);
      const { refusal, answer, end } = await checkForRefusal(sent.answer).catch((error: unknown) => {
        attempt.neverServed();
        throw error;
      });
      sent = { ...sent, answer };
      const isRefused = refusal !== null && composed !== null;
      const next = isRefused ? constraintsAfter(refusal, composed, terms, request.compose?.history) : null;
      if (!isRefused || next === null) {
        // If the engine refuses the client's own messages too, nothing is learned.
        if (sends > 1 && (answer.status < 300 || refusal !== null)) chat.terms.learn(of, terms);
        return this.#passOn(attempt, sent);
      }
      terms = next;
      await end?.();
      const isGone = await attempt.withdraw(refusal.kind);
      attempt =
        isGone && sends < MOST_SENDS - 1
          ? await this.#attempt(terms, true)
          : new Attempt(this.#on, { composed: null, notComposed: refusal.kind });
    }
  }

  /** Composes a prompt. It has been sent ahead, if it may be. */
  async #attempt(terms: PromptConstraints, isRepeated = false): Promise<Attempt> {
    try {
      const prompt = await this.#compose(terms, isRepeated);
      if (prompt.composed !== null) this.chat.sendsAhead = true;
      const ahead = this.#ahead;
      if (ahead === null || ahead.prompt.composed !== prompt.composed) return new Attempt(this.#on, prompt);
      this.#ahead = null;
      return ahead;
    } finally {
      this.#cancel();
    }
  }

  #sendAhead(composed: PlannedAnswer): void {
    this.#cancel();
    if (!this.chat.sendsAhead || isOnce(this.request.body)) return;
    this.#ahead = new Attempt(this.#on, { composed, notComposed: null });
    this.#ahead.sendAhead();
  }

  /** Of a prompt that was sent ahead and not stored. */
  #cancel(): void {
    if (this.#ahead === null) return;
    this.chat.sendsAhead = false;
    this.#ahead.cancel();
    this.#ahead = null;
  }

  async #compose(terms: PromptConstraints, isRepeated = false): Promise<ChatPrompt<PlannedAnswer>> {
    const { memprefix, request } = this;
    const { parts, depth: depths } = this.chat;
    const { compose, body } = request;
    if (compose === null) return { composed: null, notComposed: request.notWanted ?? "messages" };
    const { onFault, composeTimeoutMs: timeoutMs = COMPOSE_TIMEOUT_MS } = parts;
    const warmUp = isRepeated ? null : this.chat.warmUp;
    const isDeep = request.adaptiveDepth ?? parts.adaptiveDepth != null;
    const depth = isRepeated || !isDeep ? null : (parts.adaptiveDepth ?? DEFAULT_DEPTH);
    const toolTexts = request.tools?.texts ?? null;
    const asked = { ...compose, ...terms, toolTexts, marksElsewhere: marksElsewhereIn(body) };
    const driving =
      (stop: AbortSignal): Drive =>
      async (composing) => {
        const head = warmUp && (await composing.coldHead());
        const endWarmUp = head && warmUp?.start(memprefix, request, head);
        const retrieved = await composing.retrieve().finally(() => endWarmUp?.());
        const draft = (at: Depth | null) => composing.draft(retrieved, at);
        const isChosen = depth !== null && !stop.aborted;
        const chosen = isChosen ? await depths.choose(memprefix, request, depth, draft, stop) : null;
        return composing.store(retrieved, chosen, (answer) => {
          if (!stop.aborted) this.#sendAhead(answer);
        });
      };
    const composing = (stop: AbortSignal) =>
      memprefix.composer.compose({ request: asked, signal: stop }, driving(stop));
    return composeWithTimeout(composing, this.signal, {
      // Depth probes add their own time-out.
      timeoutMs: timeoutMs + (depth?.timeLimitMs ?? 0),
      onFault,
      onLate: (answer) => neverServed(this.#on, answer),
    });
  }

  #passOn(attempt: Attempt, sent: SentPrompt): Promise<ProxiedAnswer> {
    this.chat.answered(this.request, sent.answer.status);
    return attempt.passOn(sent);
  }
}
