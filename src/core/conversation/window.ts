import { type ChatMessage, messageDigest } from "../text/message.js";
import { meaningDigest } from "../text/message-meaning.js";

/*
 * Windows: histories that a client cut at the front (the last n messages, a token limit, a summary in place of what was cut). Sent as they
 * are, every prompt begins differently, and no prefix is reused. An epoch is a run of prompts that begin alike: each continues the one before
 * with the messages that the client cut, until that costs more than the window is worth; the next epoch begins with the client's own window.
 */

/** Where a client cut its history. */
export interface HistoryCut {
  /** Stored messages at the front that are sent still (a pinned first message, a summary). */
  readonly pinned: number;
  /** Index of the first stored message that is sent behind them; those between were cut. */
  readonly from: number;
}

/**
 * Recognises a window: what is sent begins with `pinned` stored messages, goes on with stored ones from `from` to the last, and ends with
 * new ones. Compares by meaning. Null: nothing was cut, or it is no window of what is stored. O(stored + sent).
 */
export function findCut(stored: readonly ChatMessage[], sent: readonly ChatMessage[]): HistoryCut | null {
  const [known, given] = [stored, sent].map((messages) => messages.map(meaningOf)) as [string[], string[]];
  let alike = 0;
  while (alike < known.length && known[alike] === given[alike]) alike++;
  if (alike === known.length) return null;
  for (const pinned of alike > 0 ? [alike, 0] : [0]) {
    const overlap = overlapOf(known.slice(pinned), given.slice(pinned));
    if (overlap > 0) return overlap === known.length - pinned ? null : { pinned, from: known.length - overlap };
  }
  return null;
}

/**
 * Length of the longest end of `text` that `pattern` begins with, and goes on behind, as its last message is new: Knuth, Morris and Pratt's
 * prefix function of the pattern, a separator that no digest is, and the text.
 */
function overlapOf(text: readonly string[], pattern: readonly string[]): number {
  const all = [...pattern, "", ...text];
  const borders = [0];
  for (let at = 1; at < all.length; at++) {
    let length = borders[at - 1] ?? 0;
    while (length > 0 && all[length] !== all[at]) length = borders[length - 1] ?? 0;
    borders.push(all[length] === all[at] ? length + 1 : 0);
  }
  const matched = borders.at(-1) ?? 0;
  return matched === pattern.length && matched > 0 ? (borders[matched - 1] ?? 0) : matched;
}

function meaningOf(message: ChatMessage): string {
  return meaningDigest(message, messageDigest(message));
}

/** Average tokens of an epoch's prompts, as a multiple of what the client's own windows would have sent. */
export const DEFAULT_HISTORY_RATIO = 2;

/** What an epoch has come to, and would come to. Tokens, estimated. */
export interface EpochTokens {
  /** Its prompts so far, and their tokens together. */
  readonly prompts: number;
  readonly sent: number;
  /** Its next prompt. */
  readonly next: number;
  /** The prompt of the client's own window. */
  readonly exact: number;
  /** Maximum tokens of a prompt; null: no limit. */
  readonly max: number | null;
}

/** Whether an epoch goes on: with its next prompt the average is within the ratio, and that prompt within the limit. */
export function continuesEpoch({ prompts, sent, next, exact, max }: EpochTokens, ratio: number): boolean {
  return (sent + next) / (prompts + 1) <= ratio * exact && (max === null || next <= max);
}
