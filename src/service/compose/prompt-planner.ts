import { billedBy } from "../../core/cost/expected-reads.js";
import {
  type ChatMessage,
  type Composition,
  type Conversation,
  type ConversationId,
  compose,
  type Depth,
  draftPrompt,
  IN_FLIGHT_MS,
  type MemoryId,
  memoryWarning,
  NOTHING_INJECTED,
  newPrompt,
  type Ordering,
  promptHead,
  type RequestId,
  renderSection,
  type SentTools,
  standingMemories,
  type TurnId,
  type Warning,
} from "../../core/index.js";
import type { EngineEmission } from "../../engines/adapters/engine-adapter.js";
import type { PlannedAnswer } from "../base/call-types.js";
import type { ObservedCompose } from "../base/memprefix-observer.js";
import { engineModelFor, type TenantParts } from "../base/memprefix-parts.js";
import type { Tenant } from "../base/tenant.js";
import type { EngineLaw } from "../learning/engine-measures.js";
import { deltaOf, sentAs, streamOf, userOf, type WorkingScope } from "../scopes/working-scopes.js";
import { type KnownTexts, knownTexts } from "./batch-knowledge.js";
import { type ChosenMarks, chooseMarks } from "./cache-marks.js";
import {
  type AnswerForm,
  answerAgain,
  type ComposedPromptParts,
  composeAnswer,
  enginePrompt,
  type ReusePlan,
} from "./compose-answer.js";
import { type ComposeRequest, isTry, requestDigest, topKOf } from "./compose-request.js";
import { NO_MEMORIES, type PreparedInput, PromptInputs } from "./prompt-input.js";
import type { PromptLimits } from "./prompt-limits.js";
import type { PromptRouting, RoutablePrompt } from "./prompt-routing.js";
import { RequestTerms, sentAfterNow } from "./request-terms.js";
import { type Retrieved, settleLookup, unusableWarnings } from "./retrieval.js";
import type { StoredPast } from "./stored-history.js";

export interface Planned {
  readonly answer: PlannedAnswer;
  /** Null: the answer is a stored one. */
  readonly commit: PlannedCommit | null;
}

/** A planned prompt before it is stored. The engine's cache is planned with it until it is dropped. */
export interface PlannedCommit {
  readonly observed: ObservedCompose;
  store(): Promise<void>;
  drop(): void;
}

/** A prompt's beginning, as it would be sent. */
export interface ColdHead extends EngineEmission {
  /** Null: none. */
  readonly toolTexts: readonly string[] | null;
}

export interface DraftedPrompt extends ColdHead {
  readonly ordering: Ordering;
  /** How many blocks it could have. */
  readonly blocks: number;
  /** Why the engine returns no log probabilities; null if it may. */
  readonly noLogprobs: string | null;
}

/** Drafts a request's prompt at a depth; null: with all blocks. */
export type DraftAt = (depth: Depth | null) => Promise<DraftedPrompt>;

export interface ChosenDepth extends Depth {
  readonly warnings: readonly Warning[];
}

/** Smallest uncached prefix, in tokens: below it a warm-up request costs more than it saves. */
const MIN_COLD_TOKENS = 256;

const REQUEST_ID_REUSED: Warning = {
  code: "request_id_reused",
  message: "this request id was answered before for another request; that answer is repeated",
};

const BUDGET_UNUSED: Warning = {
  code: "memory_budget_unused",
  message: 'only the policy "carry-over" uses a memory budget; this one sends what was retrieved',
};

const NO_MEMORY_SOURCE: Warning = {
  code: "no_memory_source",
  message: "the request brings no memories, and no memory source is configured to search",
};

const PROVIDER_MEMORIES_MOVED =
  "stood in front of the messages, as Mem0's AI SDK provider puts memories there; taken out and composed with the request's";

/** A prompt that is in the scope's state, but not yet in the store. */
interface ComposedPrompt {
  readonly composition: Composition;
  /** The conversation's newest turn before it. */
  readonly newest: TurnId | null;
  /** Null: a single prompt. */
  readonly conversation: Conversation | null;
  readonly tools: SentTools;
  readonly requestId: RequestId;
  readonly at: number;
  /** See `ReportGrounds`. */
  readonly settledAt: number;
  readonly marks: ChosenMarks;
  readonly warnings: readonly Warning[];
}

/** Plans one tenant's prompts. What planning needs of the store is read first; planning itself is synchronous. */
export class PromptPlanner {
  readonly #inputs: PromptInputs;

  constructor(
    private readonly parts: TenantParts,
    private readonly tenant: Tenant,
    law: EngineLaw,
    private readonly limits: PromptLimits,
    private readonly routing: PromptRouting,
  ) {
    this.#inputs = new PromptInputs(parts, law, limits);
  }

  /** Plans one prompt, or repeats the stored answer of its id. The scope must not change before the commit. */
  async plan(
    working: WorkingScope,
    request: ComposeRequest,
    retrieved: Retrieved,
    depth: ChosenDepth | null,
  ): Promise<Planned> {
    // Another process may have answered it since.
    const repeated = await this.repeat(working, request);
    if (repeated !== null) return { answer: repeated, commit: null };
    const terms = new RequestTerms(request, this.parts);
    const at = this.parts.now();
    // Prompts of concurrent requests may not be cached yet when the engine gets this one.
    const underWay = working.requests.since(at - IN_FLIGHT_MS);
    const settledAt = underWay === null ? at : underWay - 1;
    const past = await this.#inputs.read(working, terms);
    // Nothing is awaited in between: prompts planned meanwhile must leave room for it.
    const composed = this.#compose(working, terms, past, retrieved, { at, settledAt, depth });
    const drop = this.#admit(working, terms, composed);
    try {
      return await this.#toStore(working, terms, composed, drop);
    } catch (error) {
      drop();
      throw error;
    }
  }

  #compose(
    working: WorkingScope,
    terms: RequestTerms,
    past: StoredPast,
    retrieved: Retrieved,
    of: Pick<ComposedPrompt, "at" | "settledAt"> & { readonly depth: ChosenDepth | null },
  ): ComposedPrompt {
    const { request } = terms;
    const { at, settledAt, depth } = of;
    const { input, conversation, tools, warnings } = this.#inputOf(working, terms, past, retrieved, depth, at);
    const newest = conversation?.turns.newest?.id ?? null;
    const requestId = request.requestId ?? this.parts.newRequestId();
    const composition = continuable(
      this.limits.within(request, () => compose(working.state, input)),
      request,
      requestId,
    );
    const hasBudget = request.memoryBudgetTokens !== null || request.memoryBudgetRatio !== null;
    const isUnsearched = request.memories === null && request.destination == null && this.parts.source === null;
    return {
      composition,
      newest,
      conversation: conversation?.turns ?? null,
      tools,
      requestId,
      at,
      settledAt,
      marks: chooseMarks(working, terms, composition, { at, wereDrafted: depth !== null }),
      warnings: [
        ...memoryWarning("provider_memories_moved", PROVIDER_MEMORIES_MOVED, request.moved ?? []),
        ...unusableWarnings(request),
        ...(isUnsearched ? [NO_MEMORY_SOURCE] : []),
        ...warnings,
        ...composition.warnings,
        ...(hasBudget && input.policy.name !== "carry-over" ? [BUDGET_UNUSED] : []),
        ...(depth?.warnings ?? []),
      ],
    };
  }

  #inputOf(
    working: WorkingScope,
    terms: RequestTerms,
    past: StoredPast,
    { lookup, front }: Retrieved,
    depth: Depth | null,
    now: number,
  ): PreparedInput {
    const topK = topKOf(terms.request, this.parts.defaults);
    const { memories, changed, ended, warnings } = settleLookup(lookup, working.state.register, topK, now);
    return this.#inputs.of(working, terms, past, { memories, changed, ended, front, depth, warnings }, now);
  }

  /** Counts a prompt in its engine's cache. @returns takes it back */
  #admit(
    { scope, scopeId }: WorkingScope,
    { request, cache, besideTokens }: RequestTerms,
    { composition, requestId, at }: ComposedPrompt,
  ): () => void {
    // The dashboard's tries are sent to no engine.
    if (cache === undefined || request.dryRun === true || isTry(request)) return () => {};
    const { plan, turn, headTokens, knownTokens, leaf } = composition;
    const handle = sentAs(scope, requestId);
    cache.admit({
      handle,
      stream: streamOf(scope, turn.conversationId),
      user: userOf(scope),
      at,
      total: plan.totalTokens,
      cached: plan.expectedCachedTokens,
      known: knownTokens,
      head: { digest: turn.head, tokens: headTokens },
      beside: besideTokens,
      ...(scopeId === 0 ? {} : { end: { scopeId, leaf } }),
    });
    return () => cache.release(handle);
  }

  async #toStore(
    working: WorkingScope,
    terms: RequestTerms,
    { composition, newest, conversation, tools, requestId, at, settledAt, marks, warnings }: ComposedPrompt,
    drop: () => void,
  ): Promise<Planned> {
    const { request, besideTokens } = terms;
    const { scope, state } = working;
    const { unread, lateInRow } = marks;
    const { plan, byHand, memories, messages, annotations, head, turn, headTokens } = composition;
    const worker = await this.#workerFor(working, terms, routable(composition, newest), at);
    const answer = {
      memories,
      plan,
      warnings,
      grounds: {
        ...{ settledAt, headTokens },
        ...(besideTokens > 0 && { besideTokens }),
        ...(unread.length > 0 && { unread }),
      },
      worker,
    };
    if (worker !== undefined && request.worker == null) this.routing.record(state, worker, memories);
    const parts = { requestId, scope, messages, head: head.length, injection: turn.injection, annotations };
    const carried = memories.filter(({ placement }) => placement === "carried_over").map(({ label }) => label);
    const observed: ObservedCompose = {
      scope,
      requestId,
      conversationId: turn.conversationId,
      at,
      engine: terms.family,
      model: terms.model,
      plan,
      besideTokens,
      warnings,
      carriedTokens: state.register.tokensOf(new Set(carried)),
      byHand,
    };
    const store = async () => {
      const stored = { id: requestId, body: requestDigest(request), answer };
      const costs = engineModelFor(this.parts.defaults, terms.model);
      const prompt = isTry(request) ? null : newPrompt(observed, billedBy(costs, unread));
      const section = renderSection(turn.injection, state.register.textOf) || null;
      const root = terms.rootWith(tools);
      const known = conversation?.sentAfter ?? null;
      const sentAfter = turn.conversationId === null ? null : sentAfterNow(known, { root, tools: tools.known });
      const record = { composition, section, delta: deltaOf(state), request: stored, prompt, sentAfter, at };
      await working.commit((held) => held.commitCompose(record));
      if (conversation !== null && sentAfter !== null) conversation.sentAfter = sentAfter;
      if (turn.conversationId !== null) working.goesOn(turn.conversationId);
      working.requests.composed(requestId, at);
      working.newest = { head: turn.head, root, at, lateInRow };
      for (const id of new Set([request.conversationId, turn.conversationId])) working.earlier.set(id, working.newest);
      if (worker !== undefined) this.routing.assigned(worker, plan, at);
    };
    return { answer: composeAnswer(parts, answer, this.#formOf(terms, tools)), commit: { observed, store, drop } };
  }

  /** The stored answer of a request's id; null: none. */
  async repeat(working: WorkingScope, request: ComposeRequest): Promise<PlannedAnswer | null> {
    const { scope, state, scopeId } = working;
    const { requestId, conversationId } = request;
    const answered = requestId === null ? null : await this.parts.store.findRequest(scopeId, requestId);
    if (requestId === null || answered === null) return null;
    const terms = new RequestTerms(request, this.parts);
    const { worker: before, plan, memories } = answered.answer;
    const previous = answered.turns.at(-2)?.turn.id ?? null;
    // The same worker, if the request still names it.
    const worker =
      before !== undefined && terms.workers.includes(before)
        ? before
        : await this.#workerFor(working, terms, { plan, memories, previous }, this.parts.now());
    const of = { ...answered, answer: { ...answered.answer, worker } };
    const conversation = conversationId === null ? null : await working.conversation(conversationId);
    const form = this.#formOf(terms, terms.toolsAfter(conversation));
    const again = answerAgain({ requestId, scope }, of, state.register.textOf, form);
    return requestDigest(request) === answered.body
      ? again
      : { ...again, warnings: [...again.warnings, REQUEST_ID_REUSED] };
  }

  async draft(
    working: WorkingScope,
    request: ComposeRequest,
    retrieved: Retrieved,
    depth: Depth | null,
  ): Promise<DraftedPrompt> {
    const terms = new RequestTerms(request, this.parts);
    const past = await this.#inputs.read(working, terms);
    const { input, tools } = this.#inputOf(working, terms, past, retrieved, depth, this.parts.now());
    const drafted = this.limits.within(request, () => draftPrompt(working.state, input));
    const { prompt, history, choice, replay, selection, section } = drafted;
    const composed = { messages: prompt.messages, head: history.head.messages.length, injection: section.injection };
    const { stableMessages } = replay;
    const reuse = { retention: choice.retention, stableMessages };
    const emitted = this.#emitAhead(working, terms, tools, composed, reuse);
    const { ordering, fresh } = selection;
    return { ...emitted, ordering, blocks: fresh.length, noLogprobs: terms.engine.noLogprobs ?? null };
  }

  /** The prefix of a request's prompt before its memories are known; null if most of it should be cached. */
  async coldHead(working: WorkingScope, request: ComposeRequest): Promise<ColdHead | null> {
    const terms = new RequestTerms(request, this.parts);
    // The worker is chosen by the memories.
    if (terms.workers.length > 0) return null;
    const { input, tools } = await this.#inputAhead(working, terms);
    // The beginning of a window's prompt depends on its memories.
    if (input.historyTerms?.window != null) return null;
    const head = promptHead(working.state, input);
    if (head === null || head.coldTokens < MIN_COLD_TOKENS) return null;
    // Chat templates require a final question. The prompts are equal up to its text.
    const messages: ChatMessage[] = [...head.messages, { role: "user", content: "." }];
    const composed = { messages, head: head.instructions, injection: NOTHING_INJECTED };
    return this.#emitAhead(working, terms, tools, composed, { retention: "keep", stableMessages: 0 });
  }

  /** The source's memories in earlier turns of the conversation, as far as they are current. */
  async standing(working: WorkingScope, request: ComposeRequest): Promise<readonly MemoryId[]> {
    const terms = new RequestTerms(request, this.parts);
    const { input } = await this.#inputAhead(working, terms);
    return standingMemories(working.state, input);
  }

  /** What the scope knows for planning requests with these texts after the same messages. */
  async known(
    working: WorkingScope,
    request: ComposeRequest,
    texts: readonly (readonly string[])[],
  ): Promise<KnownTexts> {
    const terms = new RequestTerms(request, this.parts);
    const { input } = await this.#inputAhead(working, terms);
    return knownTexts(working.state, input, texts);
  }

  /** The input of a request whose memories are not known yet. */
  async #inputAhead(working: WorkingScope, terms: RequestTerms): Promise<PreparedInput> {
    const past = await this.#inputs.read(working, terms);
    return this.#inputs.of(working, terms, past, NO_MEMORIES, this.parts.now());
  }

  #emitAhead(
    { scope }: WorkingScope,
    terms: RequestTerms,
    tools: SentTools,
    composed: Pick<ComposedPromptParts, "messages" | "head" | "injection">,
    plan: Pick<ReusePlan, "retention" | "stableMessages">,
  ): ColdHead {
    const layout = terms.request.conversationId === null ? "single" : "conversation";
    // Not the request's own id, which belongs to the final prompt.
    const requestId = this.parts.newRequestId();
    const form = this.#formOf(terms, tools);
    const emitted = form.engine.emit(enginePrompt({ requestId, scope, ...composed }, { layout, ...plan }, form));
    return { ...emitted, toolTexts: form.toolTexts };
  }

  #formOf({ request, engine }: RequestTerms, { texts }: SentTools): AnswerForm {
    return { request, engine, cacheSecret: this.tenant.cacheSecret, toolTexts: texts.length === 0 ? null : texts };
  }

  /** The worker of a prompt, chosen by its batch or here; undefined if none are named. */
  async #workerFor(
    working: WorkingScope,
    { request, workers }: RequestTerms,
    prompt: RoutablePrompt,
    now: number,
  ): Promise<string | undefined> {
    if (request.worker != null) return request.worker;
    return workers.length === 0 ? undefined : this.routing.route(working, prompt, workers, now);
  }
}

/** A single prompt under a name of its own, by which a history that begins so is found. */
function continuable(composition: Composition, request: ComposeRequest, requestId: RequestId): Composition {
  if (request.isRecognised !== true || request.conversationId !== null) return composition;
  return { ...composition, turn: { ...composition.turn, conversationId: `unnamed:${requestId}` as ConversationId } };
}

/** A composition for routing. A restated turn was never sent; the conversation's `newest` turn before it was. */
function routable({ plan, memories, turn: { parent }, restated }: Composition, newest: TurnId | null): RoutablePrompt {
  return { plan, memories, previous: restated.some(({ turn }) => turn.id === parent) ? newest : parent };
}
