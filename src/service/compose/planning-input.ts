import {
  type ComposeInput,
  DEFAULT_HISTORY,
  DEFAULT_HISTORY_RATIO,
  type Depth,
  type Digest,
  type HistoryName,
  KEEPS_ALL,
  ORDERING_POLICIES,
  PromptTooLongError,
  plannedOrder,
  type ScopePolicy,
  type ScopeState,
} from "../../core/index.js";
import type { EngineAdapter } from "../../engines/adapters/engine-adapter.js";
import type { CommitBase } from "../../store/api/store.js";
import { MessagesTooLongError } from "../base/errors.js";
import type { TenantParts } from "../base/memstem-parts.js";
import type { EngineLaw } from "../learning/engine-law.js";
import { streamOf } from "../learning/shared-prompts.js";
import type { WorkingScope } from "../scopes/working-scope.js";
import type { ChosenDepth } from "./chosen-depth.js";
import { type ComposeRequest, DEFAULT_TOP_K } from "./compose-request.js";
import type { MemoryLookup } from "./memory-lookup.js";
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
  readonly changed?: ComposeInput["changed"];
  readonly ended?: ComposeInput["ended"];
  readonly depth: Depth | null;
}

export const NOTHING_FOUND: FoundMemories = { memories: [], front: [], depth: null };

/** Reads what planning one tenant's requests takes: the defaults behind a request, and what is stored of its past. */
export class PlanningInput {
  /** @param law the engine's cost model */
  constructor(
    private readonly parts: TenantParts,
    private readonly law: EngineLaw,
  ) {}

  /**
   * What is stored of a request's past, as old as the scope in memory. Conversations that were read stay in memory.
   *
   * @param isSent whether something is sent without a commit: then the scope has to be current
   */
  async past(working: WorkingScope, request: ComposeRequest, isSent = false): Promise<StoredPast> {
    const past = await this.readPast(working, request);
    if (past.isRead || isSent) await working.check();
    const { conversation } = past;
    if (conversation !== null) working.state.conversation(conversation.id, () => conversation.turns);
    await this.law.refresh();
    return past;
  }

  /** The same for what is only planned with. */
  readPast(working: WorkingScope, request: ComposeRequest): Promise<StoredPast> {
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
  of(
    { scope, state }: Pick<WorkingScope, "scope" | "state">,
    request: ComposeRequest,
    { messages, historyTerms }: Pick<SaidMessages, "messages" | "historyTerms">,
    { conversation, isOurs, recalled }: StoredPast,
    { memories, changed, ended, front, depth }: FoundMemories,
    now: number,
  ): ComposeInput {
    // Field by field: a copy of the request would take longer than all else here.
    const { defaults, countTokens, residency = KEEPS_ALL, sharedCache } = this.parts;
    const stream = sharedCache === undefined ? "" : streamOf(scope, request.conversationId);
    return {
      memories,
      changed,
      ended,
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
      shareTokens: sharedCache?.shareOf(stream),
      residentTokens: sharedCache?.residentOf(stream),
      wholeBlocks: sharedCache?.wholeBlocks,
    };
  }

  /** The request's messages, and what is stored of its conversation where they do not have it. */
  saidIn(request: ComposeRequest, { history: stored }: StoredPast): SaidMessages {
    const { messages, conversationId, historyRatio } = request;
    if (conversationId === null) return { messages, warnings: [] };
    const ratio = historyRatio ?? DEFAULT_HISTORY_RATIO;
    return readHistory(stored, { messages, history: this.#historyOf(request), ratio });
  }

  /** How many memories the request asks for. */
  topKOf({ topK }: ComposeRequest): number {
    return topK ?? this.parts.defaults.topK ?? DEFAULT_TOP_K;
  }

  /** What its prompt is sent to. */
  engineOf({ engine }: ComposeRequest): EngineAdapter {
    return this.parts.engines[engine ?? this.parts.defaults.engineFamily];
  }

  #historyOf({ history }: ComposeRequest): HistoryName {
    return history ?? this.parts.defaults.history ?? DEFAULT_HISTORY;
  }

  /** Where memories go after tool results: the request's choice, the configured one, or what its engine family requires. */
  #toolMemoriesOf(request: ComposeRequest) {
    const { toolMemories } = this.parts.defaults;
    return request.toolMemories ?? toolMemories ?? this.engineOf(request).toolMemories ?? null;
  }

  #policyFor({ policy }: ComposeRequest, front: readonly Digest[], { register }: ScopeState): ScopePolicy {
    if (front.length === 0 || policy !== null) return ORDERING_POLICIES[policy ?? this.parts.defaults.policy];
    return plannedOrder(front, (label) => register.get(label)?.textDigest);
  }

  #maxTokensOf({ maxPromptTokens }: ComposeRequest): number | null {
    return maxPromptTokens ?? this.parts.defaults.maxPromptTokens ?? null;
  }
}

/** What composes; throws {@link MessagesTooLongError} in the core's stead. */
export function bounded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof PromptTooLongError ? new MessagesTooLongError(error.tokens, error.maxTokens) : error;
  }
}
