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
  /** About the lookup. */
  readonly warnings: readonly Warning[];
}

export const NO_MEMORIES: PromptMemories = { memories: [], front: [], depth: null, warnings: [] };

export interface PreparedInput {
  readonly input: ComposeInput;
  /** Null: the `single` layout. */
  readonly conversation: WorkingConversation | null;
  readonly tools: SentTools;
  /** About the lookup, then about the request's history. */
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
    const { conversation, isOurs, recalled } = past;
    const { register } = working.state;
    const { defaults, countTokens } = this.parts;
    const { request, keepsInstructions, isInResult } = terms;
    const { memories, changed, ended, front, depth } = retrieved;
    const tools = terms.toolsAfter(conversation);
    const { messages, historyTerms, warnings } = readHistory(terms, past);
    const { maxPromptTokens, acceptedTokens } = this.limits.of(request);
    const sentAfter = conversation?.turns.sentAfter ?? null;
    const isListed = sentAfter !== null && (sentAfter.root.tools === null || sentAfter.tools.length > 0);
    const cache = terms.lookup(working);
    const engine = this.law.modelFor(terms.model);
    const isPlanned = front.length > 0 && request.policy === null;
    const textOf = (label: Label) => register.get(label)?.text;
    // Without spreads of long objects, which V8 makes and reads slowly.
    const input: ComposeInput = {
      messages,
      historyTerms,
      conversation,
      isCut: conversation?.isCut === true,
      isOurs,
      recalled,
      toolChanges: isListed ? tools.changes : null,
      root: terms.rootWith(tools),
      earlier: this.#earlier(working, terms, conversation, now),
      cache,
      engine: cache.blockTokens === null ? engine : { ...engine, blockTokens: cache.blockTokens },
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
      maxPromptTokens,
      acceptedTokens,
      now,
      countTokens,
    };
    return { input, conversation, tools, warnings: [...retrieved.warnings, ...warnings] };
  }

  /** The conversation's previous prompt, or the user's. */
  #earlier(
    working: WorkingScope,
    { request: { conversationId } }: RequestTerms,
    conversation: WorkingConversation | null,
    now: number,
  ) {
    const earlier = working.earlier.get(conversationId) ?? (conversationId === null ? undefined : working.newest);
    return {
      head: earlier?.head ?? null,
      root: (conversation === null ? earlier?.root : conversation.turns.sentAfter?.root) ?? null,
      ageMs: earlier === undefined ? null : Math.max(0, now - earlier.at),
    };
  }
}
