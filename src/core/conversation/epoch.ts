import { type EngineModel, promptCost, smooth } from "../cost/engine-model.js";
import { messagesTokens } from "../prompt/prompt.js";
import type { ChatMessage, TokenCounter } from "../text/message.js";

/* Epochs: runs of prompts that begin alike, until that costs more than it saves (docs/internals/algorithms.md, "Epochs"). */

/** Which messages a prompt has: `exact`: the request's; `extended`: also the cut ones; `auto`: `extended` if it pays; `stored`: all. */
export const HISTORY_NAMES = ["exact", "extended", "stored", "auto"] as const;
export type HistoryName = (typeof HISTORY_NAMES)[number];
/** A default cannot be `stored`: only a client knows that it sends new messages only. */
export const DEFAULT_HISTORY: HistoryName = "auto";

/** Average tokens of an epoch's prompts, as a multiple of the client's own windows. */
export const DEFAULT_HISTORY_RATIO = 2;

export interface PromptTokens {
  readonly total: number;
  readonly computed: number;
}

/**
 * Why an epoch began: another prompt of the previous one would have brought its average over the history ratio (`ratio`), cost more than its
 * average (`cost`), or exceeded its share of the cache (`share`) or the maximum prompt (`limit`); the request wanted its own messages only
 * (`window`); or the client replaced those that it cut (`summary`).
 */
export const EPOCH_REASONS = ["ratio", "cost", "share", "limit", "window", "summary"] as const;
export type EpochReason = (typeof EPOCH_REASONS)[number];

export interface HistoryTerms {
  readonly added: number;
  /** Also how far a new epoch stays below the limit. */
  readonly ratio: number;
  readonly isByCost: boolean;
  /** Whether messages may be left out of a prompt that would be too long. */
  readonly mayCut: boolean;
  /** Null: the messages were not cut. */
  readonly window: WindowTerms | null;
}

export type WindowTerms =
  /** The window cannot follow what is stored. */
  | { readonly kind: "begins"; readonly reason: EpochReason }
  | {
      readonly kind: "continued";
      /** The unsent messages of the epoch, then the request's. */
      readonly messages: readonly ChatMessage[];
      readonly added: number;
      /** How many sent messages are not among them. */
      readonly leftOut: number;
      readonly prompts: readonly PromptTokens[];
    };

export interface EpochBounds {
  readonly ratio: number;
  readonly max: number;
  /** Tokens that stay cached until the next turn. */
  readonly share: number;
  /** Null: cost does not decide. */
  readonly engine: EngineModel | null;
}

/**
 * Why an epoch ends before its next prompt; null: it goes on. By cost it ends once the next prompt costs more than the average so far.
 *
 * @param prompts so far; the first may be replaced by what a new epoch would begin with
 * @param exact tokens of the client's own window
 */
export function endOfEpoch(
  prompts: readonly PromptTokens[],
  next: PromptTokens,
  exact: number,
  { ratio, max, share, engine }: EpochBounds,
): EpochReason | null {
  if (next.total > max) return "limit";
  if (next.total > share && next.total > exact) return "share";
  const sent = sumOf(prompts, ({ total }) => total);
  if (sent + next.total > ratio * exact * (prompts.length + 1)) return "ratio";
  if (engine === null || prompts.length === 0) return null;
  const law = smooth(engine);
  const costOf = ({ total, computed }: PromptTokens) => promptCost(law, total, total - computed);
  return costOf(next) * prompts.length > sumOf(prompts, costOf) ? "cost" : null;
}

/** The newest messages within a token limit, from a user's message on; at least from the last one. */
export function newestWithin(
  messages: readonly ChatMessage[],
  tokens: number,
  countTokens: TokenCounter,
): readonly ChatMessage[] {
  let from = messages.length;
  let left = tokens;
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at] as ChatMessage;
    left -= messagesTokens([message], countTokens);
    if (left < 0 && from < messages.length) return messages.slice(from);
    if (message.role === "user") from = at;
  }
  return left >= 0 || from === messages.length ? messages : messages.slice(from);
}

function sumOf<T>(of: readonly T[], value: (each: T) => number): number {
  return of.reduce((sum, each) => sum + value(each), 0);
}
