import { type EngineModel, promptCost, smooth } from "../cost/engine-model.js";
import { messagesTokens } from "../prompt/prompt.js";
import type { ChatMessage, TokenCounter } from "../text/message.js";

/*
 * Epochs: runs of prompts that begin alike. Each continues the previous one with the messages that its client cut, until that costs more than it
 * saves (docs/internals/algorithms.md, "Epochs").
 */

/**
 * Which messages a prompt has:
 * - `exact`: those of the request;
 * - `extended`: also those that the client cut, while its epoch goes on;
 * - `auto`: as `extended`, if the engine's cost model says that it pays;
 * - `stored`: the whole stored conversation, then the request's.
 */
export const HISTORY_NAMES = ["exact", "extended", "stored", "auto"] as const;
export type HistoryName = (typeof HISTORY_NAMES)[number];
/** A default cannot be `stored`: only a client knows that it sends new messages only. */
export const DEFAULT_HISTORY: HistoryName = "auto";

/** Average tokens of an epoch's prompts, as a multiple of the client's own windows. */
export const DEFAULT_HISTORY_RATIO = 2;

export interface PromptTokens {
  readonly total: number;
  /** Tokens that the engine computed. */
  readonly computed: number;
}

/**
 * Why an epoch began. Another prompt of the previous one would have:
 * - `ratio`: brought its average over the history ratio;
 * - `cost`: cost more than its average;
 * - `share`: exceeded its share of the engine's cache;
 * - `limit`: exceeded the maximum prompt;
 * - `window`: not had the client's messages only (`history: "exact"`);
 * - `summary`: contained messages that the client replaced.
 */
export const EPOCH_REASONS = ["ratio", "cost", "share", "limit", "window", "summary"] as const;
export type EpochReason = (typeof EPOCH_REASONS)[number];

/** Which messages a prompt may have other than the request's own. */
export interface HistoryTerms {
  /** Messages among the request's that the client did not send. */
  readonly added: number;
  /** Also how far a new epoch stays below the limit. */
  readonly ratio: number;
  readonly isByCost: boolean;
  /** Whether messages may be left out of a prompt that would be too long. */
  readonly mayCut: boolean;
  /** Null: the messages were not cut. */
  readonly window: WindowTerms | null;
}

/** The request's messages are a window of its conversation. */
export type WindowTerms =
  /** It cannot follow what is stored. */
  | { readonly kind: "begins"; readonly reason: EpochReason }
  | {
      readonly kind: "continued";
      /** The unsent messages of the epoch, then the request's. */
      readonly messages: readonly ChatMessage[];
      /** How many of them were not sent. */
      readonly added: number;
      /** How many sent messages are not among them. */
      readonly leftOut: number;
      /** The epoch's prompts so far. */
      readonly prompts: readonly PromptTokens[];
    };

export interface EpochBounds {
  /** As {@link DEFAULT_HISTORY_RATIO}. */
  readonly ratio: number;
  readonly max: number;
  /** Tokens that stay cached until the next turn. */
  readonly share: number;
  /** Null: cost does not decide. */
  readonly engine: EngineModel | null;
}

/**
 * Why an epoch ends before its next prompt; null: it goes on. By cost it ends like a renewal process: once the next prompt costs more than the
 * average so far.
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

/**
 * The newest messages within a token limit, from a user's message on, so that a tool's result stays after its call. At least from the last user's
 * message on.
 */
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
