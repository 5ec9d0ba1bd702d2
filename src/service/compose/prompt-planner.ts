import {
  type ChatMessage,
  type ComposeInput,
  type Composition,
  compose,
  DEFAULT_HISTORY,
  DEFAULT_HISTORY_RATIO,
  type Depth,
  type Digest,
  draftPrompt,
  type HistoryName,
  IN_FLIGHT_MS,
  KEEPS_ALL,
  NOTHING_INJECTED,
  ORDERING_POLICIES,
  PromptTooLongError,
  plannedOrder,
  promptHead,
  type ScopePolicy,
  type ScopeState,
  type TurnId,
  type Warning,
} from "../../core/index.js";
import type { EngineAdapter } from "../../engines/adapters/engine-adapter.js";
import type { CommitBase } from "../../store/api/store.js";
import { MessagesTooLongError } from "../base/errors.js";
import type { ObservedCompose } from "../base/memstem-observer.js";
import type { MemstemParts } from "../base/memstem-parts.js";
import type { Tenant } from "../base/tenant.js";
import type { EngineLaw } from "../learning/engine-law.js";
import type { DeletionWatch } from "../scopes/deletion-watch.js";
import { deltaOf, type WorkingScope } from "../scopes/working-scope.js";
import type { ChosenDepth, DraftedPrompt } from "./chosen-depth.js";
import { answerAgain, type ComposeAnswer, composeAnswer, enginePrompt } from "./compose-answer.js";
import { type ComposeRequest, DEFAULT_TOP_K } from "./compose-request.js";
import { type KnownTexts, knownTexts } from "./known-texts.js";
import { type MemoryLookup, settleLookup } from "./memory-lookup.js";
import { plannedReuse } from "./planned-reuse.js";
import type { PromptRouting } from "./prompt-routing.js";
import { isDigestOf, requestDigest } from "./request-digest.js";
import { readHistory, type SaidMessages } from "./stored-history.js";
import { readPast, type StoredPast } from "./stored-past.js";

/** What a prompt is composed from besides the request. */
export interface Retrieved {
  readonly lookup: MemoryLookup;
  /** The blocks that a batch plan places first, by the digests of their texts; empty: none. */
  readonly front: readonly Digest[];
  /** How many of the found memories the prompt contains, with warnings; null: all. */
  readonly depth: ChosenDepth | null;
  /** Where no request of this id is stored: what a commit built on when that was read. Undefined: not known. */
  readonly freeAt?: CommitBase | undefined;
}

/** What of it, and of the memories found, is input of the core. */
interface FoundMemories extends Pick<Retrieved, "front"> {
  readonly memories: ComposeInput["memories"];
  readonly depth: Depth | null;
}

const NOTHING_FOUND: FoundMemories = { memories: [], front: [], depth: null };

/** An answer, and whether it is a stored one that is repeated. */
export interface PlannedPrompt {
  readonly answer: ComposeAnswer;
  readonly isRepeated: boolean;
  /** What is told of it once it is stored; null: nothing, it is a repeated one. */
  readonly observed: ObservedCompose | null;
  /** Stores the prompt, unless it is a repeated one; call once. */
  commit(): Promise<void>;
}

/** The prefix of a prompt, as sent to its engine. */
export interface ColdHead {
  readonly messages: readonly ChatMessage[];
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** Notices what was deleted since it was made. */
  readonly watch: Pick<DeletionWatch, "isSendable">;
}

/** Minimum uncached tokens of a prefix: below it a separate warm-up request costs more than it saves. */
const MIN_COLD_TOKENS = 256;

const REQUEST_ID_REUSED: Warning = {
  code: "request_id_reused",
  message: "this request id was answered before for another request; that answer is repeated",
};

const BUDGET_UNUSED: Warning = {
  code: "memory_budget_unused",
  message: 'only the policy "carry-over" uses a memory budget; this one sends what was retrieved',
};

/** Plans prompts of one tenant, each in its working scope. */
export class PromptPlanner {
  /** @param law the engine's cost model */
  constructor(
    private readonly parts: MemstemParts,
    private readonly tenant: Tenant,
    private readonly routing: PromptRouting,
    private readonly law: EngineLaw,
  ) {}

  /**
   * Composes one request in its scope, or repeats the stored answer of its id. What planning needs of the store is read first; it is synchronous
   * itself. The scope must not change before the commit.
   */
  async plan(working: WorkingScope, request: ComposeRequest, retrieved: Retrieved): Promise<PlannedPrompt> {
    const { scope, state } = working;
    // Another process's answer since then makes the commit stale.
    const repeated = working.base === retrieved.freeAt ? null : await this.repeat(working, request);
    if (repeated !== null) return { answer: repeated, isRepeated: true, observed: null, commit: async () => {} };
    const { store, now, newRequestId } = this.parts;
    const at = now();
    // Prompts of concurrent requests may not be in the cache yet when the engine gets this one.
    const underWay = await working.requests.since(at - IN_FLIGHT_MS);
    const settledAt = underWay === null ? at : underWay - 1;
    const past = await this.#past(working, request);
    const firstNew = state.register.nextLabel;
    const { memories, warnings } = settleLookup(retrieved.lookup, state.register, this.#topKOf(request));
    const said = this.#saidIn(request, past);
    const input = this.#input(state, request, said, past, { ...retrieved, memories }, at);
    const before = input.conversation?.turns.newest ?? null;
    const newest = before?.id ?? null;
    const composition = bounded(() => compose(state, input));
    const requestId = request.requestId ?? newRequestId();
    const hasBudget = request.memoryBudgetTokens !== null || request.memoryBudgetRatio !== null;
    const isBudgetUnused = hasBudget && input.policy.name !== "carry-over";
    const answer = {
      memories: composition.memories,
      plan: composition.plan,
      warnings: [
        ...movedWarnings(request),
        ...warnings,
        ...said.warnings,
        ...composition.warnings,
        ...(isBudgetUnused ? [BUDGET_UNUSED] : []),
        ...(retrieved.depth?.warnings ?? []),
      ],
      grounds: { settledAt, headTokens: composition.headTokens },
      worker: await this.routing.route(scope, state, request, routable(composition, newest), at),
    };
    if (answer.worker !== undefined) this.routing.record(state, request, answer.worker, composition.memories);
    const { messages, head, annotations, turn } = composition;
    const { injection } = turn;
    return {
      answer: composeAnswer(
        { requestId, scope, messages, head, injection, annotations },
        answer,
        this.#formOf(request),
      ),
      isRepeated: false,
      observed: {
        scope,
        requestId,
        conversationId: request.conversationId,
        at,
        engine: request.engine ?? this.parts.defaults.engineFamily,
        model: request.destination?.model || null,
        plan: composition.plan,
        warnings: answer.warnings,
        reuse: plannedReuse(composition, {
          before,
          headBefore: working.newestHead,
          firstNew,
          register: state.register,
        }),
      },
      commit: async () => {
        const stored = { id: requestId, body: requestDigest(request), answer };
        const record = { composition, delta: deltaOf(state), request: stored, at };
        await working.commit((base) => store.commitCompose(scope, base, record));
        working.requests.composed(requestId, at);
        if (request.conversationId === null) working.newestHead = turn.head;
        if (answer.worker !== undefined) this.routing.assigned(answer.worker, answer.plan, at);
      },
    };
  }

  /** Drafts a request's prompt at a depth, in its engine's form; null: with all its blocks. Serves and stores nothing. */
  async draft(
    working: WorkingScope,
    request: ComposeRequest,
    retrieved: Retrieved,
    depth: Depth | null,
  ): Promise<DraftedPrompt> {
    const stored = await this.#past(working, request, true);
    const { scope, state } = working;
    const { memories } = settleLookup(retrieved.lookup, state.register, this.#topKOf(request));
    const said = this.#saidIn(request, stored);
    const input = this.#input(state, request, said, stored, { ...retrieved, depth, memories }, this.parts.now());
    const { prompt, past, choice, replay, selection, section } = bounded(() => draftPrompt(state, input));
    const adapter = this.#engineOf(request);
    const emitted = adapter.emit({
      ...enginePrompt({
        // Not the request's own id, which belongs to the final prompt.
        requestId: this.parts.newRequestId(),
        scope,
        messages: prompt.messages,
        head: past.head.messages.length,
        plan: {
          layout: request.conversationId === null ? "single" : "conversation",
          retention: choice.retention,
          stableMessages: replay.stableMessages,
        },
        injection: section.injection,
        cacheSecret: this.tenant.cacheSecret,
      }),
      marksElsewhere: request.marksElsewhere ?? 0,
    });
    const { ordering, fresh, due } = selection;
    const noLogprobs = adapter.noLogprobs ?? null;
    return { ...emitted, ordering, blocks: fresh.length, due, noLogprobs, watch: working.watch() };
  }

  /** The prefix of a request's prompt before its memories are known, as it would be sent; null if most of it should be cached. */
  async coldHead(working: WorkingScope, request: ComposeRequest): Promise<ColdHead | null> {
    // The worker of a prompt is chosen with its memories.
    if (this.routing.namesFor(request).length > 0) return null;
    const past = await this.#past(working, request, true);
    const { scope, state } = working;
    const said = this.#saidIn(request, past);
    // What a window's prompt begins with depends on its memories.
    if (said.historyTerms?.window != null) return null;
    const head = promptHead(state, this.#input(state, request, said, past, NOTHING_FOUND, this.parts.now()));
    if (head === null || head.coldTokens < MIN_COLD_TOKENS) return null;
    const layout = request.conversationId === null ? "single" : "conversation";
    const { messages, fields, headers } = this.#engineOf(request).emit(
      enginePrompt({
        requestId: this.parts.newRequestId(),
        scope,
        // Chat templates require a final question; the prompts are equal up to its text.
        messages: [...head.messages, { role: "user", content: "." }],
        head: head.instructions,
        plan: { layout, retention: "keep", stableMessages: 0 },
        injection: NOTHING_INJECTED,
        cacheSecret: this.tenant.cacheSecret,
      }),
    );
    return { messages, fields, headers, watch: working.watch() };
  }

  #topKOf({ topK }: ComposeRequest): number {
    return topK ?? this.parts.defaults.topK ?? DEFAULT_TOP_K;
  }

  /** What the scope knows for planning requests with these texts, which have the same messages before their memories as `request`. */
  async known(
    working: WorkingScope,
    request: ComposeRequest,
    texts: readonly (readonly Digest[])[],
  ): Promise<KnownTexts> {
    const past = await this.#readPast(working, request);
    const { state } = working;
    const said = this.#saidIn(request, past);
    return knownTexts(state, this.#input(state, request, said, past, NOTHING_FOUND, this.parts.now()), texts);
  }

  /** The stored answer of a request's id; null for none. */
  async repeat(working: WorkingScope, request: ComposeRequest): Promise<ComposeAnswer | null> {
    const { scope, state } = working;
    const { requestId } = request;
    const answered = requestId === null ? null : await this.parts.store.findRequest(scope, requestId, request.messages);
    if (requestId === null || answered === null) return null;
    // It is sent without a commit.
    await working.check();
    const worker = await this.routing.routeAgain(scope, state, request, answered, this.parts.now());
    const of = { ...answered, answer: { ...answered.answer, worker } };
    const again = answerAgain({ requestId, scope }, of, state.register.textOf, this.#formOf(request));
    return isDigestOf(request, answered.body) ? again : { ...again, warnings: [...again.warnings, REQUEST_ID_REUSED] };
  }

  /**
   * What is stored of a request's past, as old as the scope in memory. Conversations that were read stay in memory.
   *
   * @param isSent whether something is sent without a commit: then the scope has to be current
   */
  async #past(working: WorkingScope, request: ComposeRequest, isSent = false): Promise<StoredPast> {
    const past = await this.#readPast(working, request);
    if (past.isRead || isSent) await working.check();
    const { conversation } = past;
    if (conversation !== null) working.state.conversation(conversation.id, () => conversation.turns);
    await this.law.refresh();
    return past;
  }

  #readPast(working: WorkingScope, request: ComposeRequest): Promise<StoredPast> {
    const { conversationId, messages } = request;
    const toolMemories = this.#toolMemoriesOf(request);
    return readPast(this.parts.store, working, {
      conversationId,
      messages,
      history: this.#historyOf(request),
      toolMemories,
    });
  }

  /** The core's input for the request. */
  #input(
    state: ScopeState,
    request: ComposeRequest,
    { messages, historyTerms }: Pick<SaidMessages, "messages" | "historyTerms">,
    { conversation, isOurs, recalled }: StoredPast,
    { memories, front, depth }: FoundMemories,
    now: number,
  ): ComposeInput {
    // Field by field: a copy of the request would take longer than all else here.
    const { defaults, countTokens, residency = KEEPS_ALL } = this.parts;
    return {
      memories,
      conversation,
      messages,
      historyTerms,
      isOurs,
      recalled,
      now,
      countTokens,
      residency,
      policy: this.#policyFor(request, front, state),
      engine: this.law.model,
      depth: depth ?? undefined,
      retention: request.retention ?? defaults.retention,
      annotations: request.annotations,
      toolMemories: this.#toolMemoriesOf(request),
      dedupe: request.dedupe ?? defaults.dedupe,
      memoryBudgetTokens: request.memoryBudgetTokens,
      memoryBudgetRatio: request.memoryBudgetRatio,
      maxPromptTokens: this.#maxTokensOf(request),
      acceptedTokens: request.acceptedTokens,
    };
  }

  /** The request's messages, and what is stored of its conversation where they do not have it. */
  #saidIn(request: ComposeRequest, { history: stored }: StoredPast): SaidMessages {
    const { messages, conversationId, historyRatio } = request;
    if (conversationId === null) return { messages, warnings: [] };
    const ratio = historyRatio ?? DEFAULT_HISTORY_RATIO;
    return readHistory(stored, { messages, history: this.#historyOf(request), ratio });
  }

  #historyOf({ history }: ComposeRequest): HistoryName {
    return history ?? this.parts.defaults.history ?? DEFAULT_HISTORY;
  }

  /** Where memories go after tool results: the request's choice, else what its engine family requires. */
  #toolMemoriesOf(request: ComposeRequest) {
    return request.toolMemories ?? this.#engineOf(request).toolMemories ?? null;
  }

  #policyFor({ policy }: ComposeRequest, front: readonly Digest[], { register }: ScopeState): ScopePolicy {
    if (front.length === 0 || policy !== null) return ORDERING_POLICIES[policy ?? this.parts.defaults.policy];
    return plannedOrder(front, (label) => register.get(label)?.textDigest);
  }

  #maxTokensOf({ maxPromptTokens }: ComposeRequest): number | null {
    return maxPromptTokens ?? this.parts.defaults.maxPromptTokens ?? null;
  }

  #engineOf({ engine }: ComposeRequest): EngineAdapter {
    return this.parts.engines[engine ?? this.parts.defaults.engineFamily];
  }

  #formOf(request: ComposeRequest) {
    return {
      prompt: request.prompt,
      engine: this.#engineOf(request),
      marksElsewhere: request.marksElsewhere ?? 0,
      given: request.given ?? null,
      cacheSecret: this.tenant.cacheSecret,
    };
  }
}

function movedWarnings({ moved = [] }: ComposeRequest): readonly Warning[] {
  if (moved.length === 0) return [];
  const message =
    "stood in front of the messages, as Mem0's AI SDK provider puts memories there; taken out and composed with the request's";
  return [{ code: "provider_memories_moved", message, memoryIds: moved }];
}

/** A composition as its routing reads it. A restated turn was not sent; what was, is the conversation's `newest` turn before it. */
function routable({ plan, memories, turn: { parent }, restated }: Composition, newest: TurnId | null) {
  return { plan, memories, previous: restated.some(({ turn }) => turn.id === parent) ? newest : parent };
}

/** What composes; throws {@link MessagesTooLongError} in the core's stead. */
function bounded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof PromptTooLongError ? new MessagesTooLongError(error.tokens, error.maxTokens) : error;
  }
}
