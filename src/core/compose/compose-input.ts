import type { EndedMemory, RenderedMemory } from "../blocks/context-block.js";
import type { CacheLookup } from "../cache/engine-cache.js";
import type { RetentionName } from "../conversation/conversation.js";
import type { HistoryTerms } from "../conversation/epoch.js";
import type { HistoryInput } from "../conversation/history.js";
import type { Annotations } from "../conversation/injecting.js";
import type { DedupeName } from "../conversation/repeats.js";
import type { EngineModel } from "../cost/engine-model.js";
import type { ScopePolicy } from "../published/published-knowledge.js";
import type { Digest } from "../text/ids.js";
import type { TokenCounter } from "../text/message.js";
import type { Depth } from "./depth.js";

/** One checked request with its memories. */
export interface ComposeInput extends HistoryInput {
  readonly policy: ScopePolicy;
  /** Maximum tokens of this turn's blocks, carried ones included; null: the retrieved blocks only. Used by policies that carry. */
  readonly memoryBudgetTokens: number | null;
  /** The same for all of the scope's prompts with a ratio, as a multiple of the retrieved tokens; see {@link bankAllowance}. Null: none. */
  readonly memoryBudgetRatio: number | null;
  /** The cost model of the engine that the prompt goes to. */
  readonly engine: EngineModel;
  /** How many of the retrieved blocks to inject. Default: all. */
  readonly depth?: Depth | undefined;
  /** Whether blocks that were not retrieved may be carried: not where the request is about some of the memories alone. Default: yes. */
  readonly mayCarry?: boolean | undefined;
  /** In relevance order, best first. */
  readonly memories: readonly RenderedMemory[];
  /** Texts of known memories as they are now, which the request does not ask for. Default: none. */
  readonly changed?: readonly RenderedMemory[] | undefined;
  /** Those of which their source says that they no longer hold. Default: none. */
  readonly ended?: readonly EndedMemory[] | undefined;
  /** Whether the conversation lost its end since its newest prompt, because a memory was forgotten. Default: no. */
  readonly isCut?: boolean | undefined;
  /** What the engine has cached for it. */
  readonly cache: CacheLookup;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly annotations: Annotations;
  /** What later prompts of the conversation keep of this one's injection. */
  readonly retention: RetentionName;
  readonly countTokens: TokenCounter;
  /**
   * Maximum tokens of the prompt, by the token counter: a longer one becomes a fresh start with the blocks that fit. Throws
   * {@link PromptTooLongError} if the messages alone are longer. Default: no limit.
   */
  readonly maxPromptTokens?: number | null | undefined;
  /** Tokens that the engine was found to accept: the same, but messages that come to more are composed without memories. */
  readonly acceptedTokens?: number | null | undefined;
  /** The instructions of the user's prompt before, and milliseconds since it; null: not known. */
  readonly earlier?: { readonly head: Digest | null; readonly ageMs: number | null } | undefined;
  /** Which texts are given once. Default: {@link DEFAULT_DEDUPE}. */
  readonly dedupe?: DedupeName | undefined;
  /** Which messages of the conversation the prompt has. Default: `messages`. */
  readonly historyTerms?: HistoryTerms | undefined;
}

/** A prompt's messages come to more tokens than it may have, without any memory. */
export class PromptTooLongError extends Error {
  override readonly name = "PromptTooLongError";
  constructor(
    readonly tokens: number,
    readonly maxTokens: number,
  ) {
    super(`the messages come to ${tokens} tokens without any memory, more than ${maxTokens}`);
  }
}
