import type { EndedMemory, RenderedMemory } from "../blocks/context-block.js";
import type { CacheLookup } from "../cache/engine-cache.js";
import type { RetentionName } from "../conversation/conversation.js";
import type { HistoryTerms } from "../conversation/epoch.js";
import type { HistoryInput } from "../conversation/history.js";
import type { Annotations } from "../conversation/injecting.js";
import type { DedupeName } from "../conversation/repeats.js";
import type { EngineModel } from "../cost/engine-model.js";
import type { PromptRoot } from "../prompt/prompt.js";
import type { ToolChanges } from "../prompt/tools.js";
import type { ScopePolicy } from "../published/published-knowledge.js";
import type { Digest } from "../text/ids.js";
import type { TokenCounter } from "../text/message.js";
import type { Depth } from "./depth.js";

export interface ComposeInput extends HistoryInput {
  readonly policy: ScopePolicy;
  /** Maximum tokens of this turn's blocks, carried ones included. Null: no blocks are carried. */
  readonly memoryBudgetTokens: number | null;
  /** A multiple of the retrieved tokens, for all of the scope's prompts together; see {@link bankAllowance}. */
  readonly memoryBudgetRatio: number | null;
  readonly engine: EngineModel;
  /** Default: all retrieved blocks. */
  readonly depth?: Depth | undefined;
  /** False if the request is about some memories only. Default: true. */
  readonly mayCarry?: boolean | undefined;
  readonly memories: readonly RenderedMemory[];
  /** New texts of known memories that the request does not retrieve. */
  readonly changed?: readonly RenderedMemory[] | undefined;
  /** Memories that their source says no longer hold. */
  readonly ended?: readonly EndedMemory[] | undefined;
  /** Whether forgetting a memory cut the conversation since its newest prompt. */
  readonly isCut?: boolean | undefined;
  readonly cache: CacheLookup;
  readonly now: number;
  readonly annotations: Annotations;
  /** What later prompts keep of this turn's injection. */
  readonly retention: RetentionName;
  readonly countTokens: TokenCounter;
  /** Default: unlimited. A longer prompt becomes a fresh start. Throws {@link PromptTooLongError} if the messages alone are longer. */
  readonly maxPromptTokens?: number | null | undefined;
  /** A limit learned from the engine. Longer messages are composed without memories instead of throwing. */
  readonly acceptedTokens?: number | null | undefined;
  /** Default: no model and no tools. */
  readonly root?: PromptRoot | undefined;
  /** Since the conversation's newest prompt. Default: unknown. */
  readonly toolChanges?: ToolChanges | null | undefined;
  readonly earlier?: EarlierPrompt | undefined;
  readonly dedupe?: DedupeName | undefined;
  /** Default: `messages` only. */
  readonly historyTerms?: HistoryTerms | undefined;
}

/** The conversation's previous prompt, or the user's. */
export interface EarlierPrompt {
  /** Digest of its instructions, with its root. */
  readonly head: Digest | null;
  /** Null: unknown. */
  readonly root: PromptRoot | null;
  readonly ageMs: number | null;
}

export class PromptTooLongError extends Error {
  override readonly name = "PromptTooLongError";
  constructor(
    readonly tokens: number,
    readonly maxTokens: number,
  ) {
    super(`the messages come to ${tokens} tokens without any memory, more than ${maxTokens}`);
  }
}
