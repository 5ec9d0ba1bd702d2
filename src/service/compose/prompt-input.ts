import {
  type ComposeInput,
  type Depth,
  type Label,
  ORDERING_POLICIES,
  plannedOrder,
  type SentTools,
  type Warning,
} from "../../core/index.js";
import type { TenantParts } from "../base/memprefix-parts.js";
import type { EngineLaw } from "../learning/engine-measures.js";
import type { WorkingConversation, WorkingScope } from "../scopes/working-scopes.js";
import type { PromptLimits } from "./prompt-limits.js";
import type { RequestTerms } from "./request-terms.js";
import { isNarrowed, type Retrieved, type SettledLookup } from "./retrieval.js";
import { readHistory, readPast, type StoredPast } from "./stored-history.js";

interface PromptMemories extends Pick<Retrieved, "front">, Pick<SettledLookup, "memories"> {
  readonly changed?: SettledLookup["changed"];
  readonly ended?: SettledLookup["ended"];
  readonly depth: Depth | null;
}

export const NO_MEMORIES: PromptMemories = { memories: [], front: [], depth: null };

export interface PreparedInput {
  readonly input: ComposeInput;
  /** Null: the `single` layout. */
  readonly conversation: WorkingConversation | null;
  readonly tools: SentTools;
  /** About the request's history. */
  readonly warnings: readonly Warning[];
}

/** Makes the core's input of a request: all that a prompt depends on. */
export class PromptInputs {
  constructor(
    private readonly parts: TenantParts,
    private readonly law: EngineLaw,
    private readonly limits: PromptLimits,
  ) {}

  /** Reads all that {@link of} needs of the store. A conversation that was read stays in memory. */
  async read(working: WorkingScope, terms: RequestTerms): Promise<StoredPast> {
    const past = await readPast(this.parts.store, working, terms);
    const { conversation } = past;
    if (conversation?.isRead === true) working.keep(conversation.id, conversation);
    await this.law.refresh();
    return past;
  }

  /** Synchronous: a prompt that is planned meanwhile changes what the engine's cache has room for. */
  of(
    working: WorkingScope,
    terms: RequestTerms,
    past: StoredPast,
    retrieved: PromptMemories,
    now: number,
  ): PreparedInput {
    const { conversation } = past;
    const tools = terms.toolsAfter(conversation);
    const { historyTerms, warnings, ...said } = readHistory(terms, past);
    const input: ComposeInput = {
      ...this.#stateOf(working, terms, past, tools, now),
      ...this.#wanted(working, terms, retrieved),
      messages: said.messages,
      historyTerms,
      now,
      countTokens: this.parts.countTokens,
    };
    return { input, conversation, tools, warnings };
  }

  /** What was sent before, and what the engine has of it. */
  #stateOf(
    working: WorkingScope,
    terms: RequestTerms,
    { conversation, isOurs, recalled }: StoredPast,
    tools: SentTools,
    now: number,
  ) {
    const { conversationId } = terms.request;
    const earlier = working.earlier.get(conversationId) ?? (conversationId === null ? undefined : working.newest);
    const sentAfter = conversation?.turns.sentAfter ?? null;
    const root = conversation === null ? (earlier?.root ?? null) : (sentAfter?.root ?? null);
    const isListed = sentAfter !== null && (sentAfter.root.tools === null || sentAfter.tools.length > 0);
    const cache = terms.lookup(working.scope);
    const engine = this.law.modelFor(terms.model);
    return {
      conversation,
      isCut: conversation?.isCut === true,
      isOurs,
      recalled,
      cache,
      engine: cache.blockTokens === null ? engine : { ...engine, blockTokens: cache.blockTokens },
      root: terms.rootWith(tools),
      toolChanges: isListed ? tools.changes : null,
      earlier: {
        head: earlier?.head ?? null,
        root,
        ageMs: earlier === undefined ? null : Math.max(0, now - earlier.at),
      },
    };
  }

  /** What the request requires. */
  #wanted(
    { state }: WorkingScope,
    { request, keepsInstructions, isInResult }: RequestTerms,
    { memories, changed, ended, front, depth }: PromptMemories,
  ) {
    const { defaults } = this.parts;
    const isPlanned = front.length > 0 && request.policy === null;
    const textOf = (label: Label) => state.register.get(label)?.textDigest;
    return {
      memories,
      changed,
      ended,
      depth: depth ?? undefined,
      policy: isPlanned ? plannedOrder(front, textOf) : ORDERING_POLICIES[request.policy ?? defaults.policy],
      retention: request.retention ?? defaults.retention,
      annotations: request.annotations,
      dedupe: request.dedupe ?? undefined,
      memoryBudgetTokens: request.memoryBudgetTokens,
      memoryBudgetRatio: request.memoryBudgetRatio,
      mayCarry: !isNarrowed(request),
      keepsInstructions,
      inResult: isInResult,
      ...this.limits.of(request),
    };
  }
}
