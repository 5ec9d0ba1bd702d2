import { type EngineModel, promptCost, smooth } from "../cost/engine-model.js";
import { messagesTokens } from "../prompt/prompt.js";
import type { ChatMessage, TokenCounter } from "../text/message.js";

/*
 * Epochs: runs of prompts that begin alike. Each continues the one before with the messages that its client cut, until that costs more than
 * it saves; the next epoch begins with the client's own window (docs/internals/algorithms.md, "Epochs").
 */

/**
 * Which messages a prompt has:
 * - `exact`: those of the request;
 * - `extended`: of a history that was cut, what its client cut too, for as long as its epoch goes on;
 * - `auto`: the same, where the engine's cost says that it pays;
 * - `stored`: everything that is stored of the conversation, and the request's after it.
 */
export const HISTORY_NAMES = ["exact", "extended", "stored", "auto"] as const;
export type HistoryName = (typeof HISTORY_NAMES)[number];
/** Those that can be a service's default: that only new messages are sent is a client's to say. */
export const DEFAULT_HISTORY: HistoryName = "auto";

/** Average tokens of an epoch's prompts, as a multiple of what the client's own windows would have sent. */
export const DEFAULT_HISTORY_RATIO = 2;

/** Tokens of a prompt, estimated. */
export interface PromptTokens {
  readonly total: number;
  /** Those that the engine had to compute. */
  readonly computed: number;
}

/**
 * Why an epoch began, with a prompt that does not continue the one before:
 * - `ratio`: another prompt would have brought the epoch's average over the history ratio;
 * - `cost`: another prompt would have cost more than the epoch's average, by the engine's cost model;
 * - `share`: another prompt would have been longer than its share of the engine's cache;
 * - `limit`: another prompt would have been longer than a prompt may be;
 * - `window`: the client's own messages only, by `history: "exact"`;
 * - `summary`: the client sent other messages in place of those that it cut.
 */
export const EPOCH_REASONS = ["ratio", "cost", "share", "limit", "window", "summary"] as const;
export type EpochReason = (typeof EPOCH_REASONS)[number];

/** Which messages of a conversation a prompt may have besides, or in place of, the request's own. */
export interface HistoryTerms {
  /** Messages among the request's that the client did not send. */
  readonly added: number;
  /** Tokens of an epoch's prompts, as a multiple of the window's; also how far a new epoch stays below the limit. */
  readonly ratio: number;
  /** Whether the engine's cost ends an epoch too. */
  readonly isByCost: boolean;
  /** Whether messages may be left out of a prompt that would be too long. */
  readonly mayCut: boolean;
  /** How the messages were cut; null: they were not. */
  readonly window: WindowTerms | null;
}

/** The request's messages are a window of its conversation. */
export type WindowTerms =
  /** It cannot go on after what is stored: a new epoch begins. */
  | { readonly kind: "begins"; readonly reason: EpochReason }
  | {
      readonly kind: "continued";
      /** The request's messages after those of the epoch that were not sent. */
      readonly messages: readonly ChatMessage[];
      /** How many of them were not sent. */
      readonly added: number;
      /** How many sent messages are not among them. */
      readonly leftOut: number;
      /** The epoch's prompts so far. */
      readonly prompts: readonly PromptTokens[];
    };

export interface EpochBounds {
  /** Average tokens of its prompts, as a multiple of what the client's own windows would have sent. */
  readonly ratio: number;
  /** Maximum tokens of a prompt; infinite: no limit. */
  readonly max: number;
  /** Tokens that a prompt may have to be still cached at the next turn; infinite: no limit. */
  readonly share: number;
  /** The engine whose cost decides too; null: it does not. */
  readonly engine: EngineModel | null;
}

/**
 * Why an epoch ends before its next prompt; null: it goes on. By cost it ends as a renewal process does at least cost per turn: when the
 * next prompt costs more than those before it on average, of which the first was the dearest.
 *
 * @param prompts its prompts so far; by what a new epoch would begin with, in place of the first, where that is known
 * @param exact tokens of the prompt of the client's own window
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
 * The newest messages that come to at most so many tokens; all of them, or from a user's message on: a tool's result stays after its call.
 * At least from the last user's message on, whatever it comes to.
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
