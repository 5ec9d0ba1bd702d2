import {
  type ChatMessage,
  type ComposeInput,
  type Composition,
  Conversation,
  compose,
  DEFAULT_HISTORY,
  DEFAULT_HISTORY_RATIO,
  type Depth,
  type Digest,
  draftPrompt,
  type EngineModel,
  IN_FLIGHT_MS,
  KEEPS_ALL,
  NOTHING_INJECTED,
  ORDERING_POLICIES,
  PromptTooLongError,
  plannedOrder,
  promptHead,
  recallPast,
  type Scope,
  type ScopePolicy,
  type ScopeState,
  type TurnId,
  type Warning,
} from "../../core/index.js";
import type { EngineAdapter } from "../../engines/adapters/engine-adapter.js";
import { DeletedMeanwhileError, MessagesTooLongError } from "../base/errors.js";
import type { MemstemParts } from "../base/memstem-parts.js";
import type { Tenant } from "../base/tenant.js";
import type { WorkingScope } from "../scopes/working-scopes.js";
import type { ChosenDepth, DraftedPrompt } from "./chosen-depth.js";
import { answerAgain, type ComposeAnswer, composeAnswer, enginePrompt } from "./compose-answer.js";
import { type ComposeRequest, DEFAULT_TOP_K } from "./compose-request.js";
import { type KnownTexts, knownTexts } from "./known-texts.js";
import { type MemoryLookup, settleLookup } from "./memory-lookup.js";
import type { PromptRouting } from "./prompt-routing.js";
import { isDigestOf, requestDigest } from "./request-digest.js";
import { readHistory, type SaidMessages } from "./stored-history.js";

/** What a prompt is composed from besides the request. */
export interface Retrieved {
  readonly lookup: MemoryLookup;
  /** The blocks that a batch plan places first, by the digests of their texts; empty: none. */
  readonly front: readonly Digest[];
  /** How many of the found memories the prompt contains, with warnings; null: all. */
  readonly depth: ChosenDepth | null;
}

/** An answer, and whether it is a stored one that is repeated. */
export interface PlannedPrompt {
  readonly answer: ComposeAnswer;
  readonly isRepeated: boolean;
  /** Stores the prompt, unless it is a repeated one; call once. */
  commit(): void;
}

/** The prefix of a prompt, as sent to its engine. */
export interface ColdHead {
  readonly messages: readonly ChatMessage[];
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
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
  /** @param engineModel the engine's current cost model */
  constructor(
    private readonly parts: MemstemParts,
    private readonly tenant: Tenant,
    private readonly routing: PromptRouting,
    private readonly engineModel: () => EngineModel,
  ) {}

  /**
   * Composes one request in its scope, or repeats the stored answer of its id. The scope must not change before the commit. Throws
   * {@link DeletedMeanwhileError} if an answer to repeat is gone.
   *
   * @param retrieved null: the request was answered before, and only its stored answer may be returned
   */
  plan(working: WorkingScope, scope: Scope, request: ComposeRequest, retrieved: Retrieved | null): PlannedPrompt {
    const repeated = this.#repeated(working.state, scope, request);
    if (repeated !== null) return { answer: repeated, isRepeated: true, commit: () => {} };
    if (retrieved === null) throw new DeletedMeanwhileError();
    const { store, now, newRequestId } = this.parts;
    const at = now();
    // Prompts of concurrent requests may not be in the cache yet when the engine gets this one.
    const since = at - IN_FLIGHT_MS;
    const isIdle = working.newestAt !== undefined && working.newestAt <= since;
    const underWay = isIdle ? null : store.underWaySince(scope, since);
    const settledAt = underWay === null ? at : underWay - 1;
    const { memories, warnings } = settleLookup(retrieved.lookup, working.state.register, this.#topKOf(request));
    const { warnings: ofHistory, ...said } = this.#saidIn(working.state, scope, request);
    const input = { ...this.#input(working.state, scope, { ...request, ...said }, retrieved, at), memories };
    const newest = input.conversation?.turns.newest?.id ?? null;
    const composition = bounded(() => compose(working.state, input));
    const requestId = request.requestId ?? newRequestId();
    const hasBudget = request.memoryBudgetTokens !== null || request.memoryBudgetRatio !== null;
    const isBudgetUnused = hasBudget && input.policy.name !== "carry-over";
    const answer = {
      memories: composition.memories,
      plan: composition.plan,
      warnings: [
        ...movedWarnings(request),
        ...warnings,
        ...ofHistory,
        ...composition.warnings,
        ...(isBudgetUnused ? [BUDGET_UNUSED] : []),
        ...(retrieved.depth?.warnings ?? []),
      ],
      grounds: { settledAt, headTokens: composition.headTokens },
      worker: this.routing.route(scope, working.state, request, routable(composition, newest), at),
    };
    if (answer.worker !== undefined) this.routing.record(working.state, request, answer.worker, composition.memories);
    const changes = working.state.drain();
    const { injection } = composition.turn;
    return {
      answer: composeAnswer({ ...composition, injection, requestId, scope }, answer, this.#formOf(request)),
      isRepeated: false,
      commit: () => {
        working.version = store.commitCompose(scope, working.version, {
          composition,
          changes,
          request: { id: requestId, body: requestDigest(request), answer },
          at,
        });
        working.newestAt = at;
        if (answer.worker !== undefined) this.routing.assigned(answer.worker, answer.plan, at);
      },
    };
  }

  /** Drafts a request's prompt at a depth, in its engine's form; null: with all its blocks. Serves and stores nothing. */
  draft(
    { state }: WorkingScope,
    scope: Scope,
    request: ComposeRequest,
    retrieved: Retrieved,
    depth: Depth | null,
  ): DraftedPrompt {
    const { memories } = settleLookup(retrieved.lookup, state.register, this.#topKOf(request));
    const { warnings: _, ...said } = this.#saidIn(state, scope, request);
    const input = this.#input(state, scope, { ...request, ...said }, retrieved, this.parts.now());
    const { prompt, past, choice, replay, selection, section } = bounded(() =>
      draftPrompt(state, { ...input, memories, depth: depth ?? undefined }),
    );
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
    return { ...emitted, ordering, blocks: fresh.length, due, noLogprobs: adapter.noLogprobs ?? null };
  }

  /** The prefix of a request's prompt before its memories are known, as it would be sent; null if most of it should be cached. */
  coldHead({ state }: WorkingScope, scope: Scope, request: ComposeRequest): ColdHead | null {
    // The worker of a prompt is chosen with its memories.
    if (this.routing.namesFor(request).length > 0) return null;
    const { messages: said, historyTerms } = this.#saidIn(state, scope, request);
    // What a window's prompt begins with depends on its memories.
    if (historyTerms?.window != null) return null;
    const head = promptHead(state, this.#context(state, scope, { ...request, messages: said }, this.parts.now()));
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
    return { messages, fields, headers };
  }

  #topKOf({ topK }: ComposeRequest): number {
    return topK ?? this.parts.defaults.topK ?? DEFAULT_TOP_K;
  }

  /** What the scope knows for planning requests with these texts, which have the same messages before their memories as `request`. */
  known(
    { state }: WorkingScope,
    scope: Scope,
    request: ComposeRequest,
    texts: readonly (readonly Digest[])[],
  ): KnownTexts {
    const { messages } = this.#saidIn(state, scope, request);
    return knownTexts(state, this.#context(state, scope, { ...request, messages }, this.parts.now()), texts);
  }

  /** The stored answer of a request's id; null for none. */
  #repeated(state: ScopeState, scope: Scope, request: ComposeRequest): ComposeAnswer | null {
    const { requestId } = request;
    const answered = requestId === null ? null : this.parts.store.findRequest(scope, requestId);
    if (requestId === null || answered === null) return null;
    const worker = this.routing.routeAgain(scope, state, request, answered, this.parts.now());
    const of = { ...answered, answer: { ...answered.answer, worker } };
    const again = answerAgain({ requestId, scope }, of, state.register.textOf, this.#formOf(request));
    return isDigestOf(request, answered.body) ? again : { ...again, warnings: [...again.warnings, REQUEST_ID_REUSED] };
  }

  /** The core's input for the request, without its memories. */
  #input(
    state: ScopeState,
    scope: Scope,
    request: ComposeRequest & Pick<SaidMessages, "historyTerms">,
    { front, depth }: Retrieved,
    now: number,
  ): Omit<ComposeInput, "memories"> {
    return {
      ...request,
      ...this.#context(state, scope, request, now),
      policy: this.#policyFor(request, front, state),
      engine: this.engineModel(),
      depth: depth ?? undefined,
      maxPromptTokens: this.#maxTokensOf(request),
      dedupe: request.dedupe ?? this.parts.defaults.dedupe,
    };
  }

  /** The request's messages, and what is stored of its conversation where they do not have it. */
  #saidIn(state: ScopeState, scope: Scope, request: ComposeRequest): SaidMessages {
    const { messages, conversationId: id, history, historyRatio } = request;
    const { store, defaults } = this.parts;
    if (id === null) return { messages, warnings: [] };
    const name = history ?? defaults.history ?? DEFAULT_HISTORY;
    const stored = name === "stored" || this.#isCut(state, scope, request) ? store.findHistory(scope, id) : null;
    return readHistory(stored, { messages, history: name, ratio: historyRatio ?? DEFAULT_HISTORY_RATIO });
  }

  /** Whether the conversation has turns, and the request does not continue the newest one. */
  #isCut(state: ScopeState, scope: Scope, request: ComposeRequest): boolean {
    const { turns, history } = recallPast(this.#context(state, scope, request, 0));
    return history.turns.at(-1)?.turn !== turns.newest;
  }

  /** The part of the input that is known before the memory search. */
  #context(state: ScopeState, scope: Scope, request: ComposeRequest, now: number) {
    const { store, defaults, countTokens, residency = KEEPS_ALL } = this.parts;
    const { conversationId: id } = request;
    return {
      conversation:
        id === null
          ? null
          : { id, turns: state.conversation(id, () => new Conversation(store.loadConversation(scope, id))) },
      messages: request.messages,
      residency,
      retention: request.retention ?? defaults.retention,
      now,
      // Where memories go after tool results: the request's choice, else what its engine family requires.
      toolMemories: request.toolMemories ?? this.#engineOf(request).toolMemories ?? null,
      countTokens,
      isOurs: (section: Digest) => store.knowsSection(scope, section),
    };
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
