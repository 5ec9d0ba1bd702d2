import type { Digest } from "../text/ids.js";
import { type ChatMessage, isCall, messageDigest, messageText } from "../text/message.js";
import { meaningDigest } from "../text/message-meaning.js";

/*
 * Windows: histories that do not begin where the conversation's newest prompt begins, because the client cut them at the front (the last n
 * messages, a token limit, a summary in place of what was cut), or because memstem did. Recognised by content, by meaning.
 */

/** How what a client sent stands to the messages of its conversation's newest prompt. */
export type Window =
  /** Stored messages, without some that the client cut, and new ones behind them. */
  | {
      readonly kind: "cut";
      /** How many of the last sent messages are new. */
      readonly fresh: number;
    }
  /** Messages that the newest prompt does not have, then everything that it has, then new ones. */
  | { readonly kind: "longer"; readonly inFront: number; readonly fresh: number }
  /** Other messages in place of those that were cut (a summary), then stored ones, then new ones. */
  | { readonly kind: "summarised" };

/**
 * Recognises a window. Null: everything that is stored is sent, or a message in the middle is missing or changed (an edit), or nothing is
 * alike. O(stored + sent).
 */
export function findWindow(stored: readonly ChatMessage[], sent: readonly ChatMessage[]): Window | null {
  const [known, given] = [stored.map(meant), sent.map(meant)];
  const found = windowOf(known, given);
  if (found !== null) return found === "whole" ? null : found;
  const said = known.filter(({ message }) => !isToolTraffic(message));
  if (said.length === known.length || said.length === 0) return null;
  const withoutTools = windowOf(said, given);
  if (withoutTools === "whole") return { kind: "cut", fresh: given.length - said.length };
  return withoutTools?.kind === "cut" ? withoutTools : null;
}

/** A message with the digest of its meaning. */
interface MeantMessage {
  readonly message: ChatMessage;
  readonly meaning: Digest;
}

function meant(message: ChatMessage): MeantMessage {
  return { message, meaning: meaningOf(message) };
}

/** "whole": everything known is given, with new messages behind it. */
function windowOf(known: readonly MeantMessage[], given: readonly MeantMessage[]): Window | "whole" | null {
  const isAlike = (count: number) => known.slice(0, count).every(({ meaning }, at) => meaning === given[at]?.meaning);
  if (known.length < given.length && isAlike(known.length)) return "whole";
  const { length, fresh } = longestOverlap(known, given);
  if (length === 0) return null;
  const inFront = given.length - fresh - length;
  if (length === known.length) return { kind: "longer", inFront, fresh };
  const cut = known.length - length;
  if (inFront <= cut && isAlike(inFront)) return { kind: "cut", fresh };
  if (inFront === 1 && isEndOf(given[0]?.message, known[cut - 1]?.message)) return { kind: "cut", fresh };
  return isAlike(1) ? null : { kind: "summarised" };
}

/** The longest end of `known` that occurs in `given` with at least one message behind it; of several, the last. */
function longestOverlap(known: readonly MeantMessage[], given: readonly MeantMessage[]) {
  const [pattern, text] = [known, given].map((messages) => messages.map(({ meaning }) => meaning).reverse());
  let best = { length: 0, fresh: 0 };
  for (const [at, length] of commonPrefixes(pattern as Digest[], text as Digest[]).entries())
    if (at > 0 && length > best.length) best = { length, fresh: at };
  return best;
}

/** For each place of `text`, how much of `pattern` it begins with: the Z function of pattern, separator and text. */
function commonPrefixes(pattern: readonly Digest[], text: readonly Digest[]): readonly number[] {
  // No digest is empty.
  const all = [...pattern, "", ...text];
  const lengths = [0];
  let [from, to] = [0, 0];
  for (let at = 1; at < all.length; at++) {
    let length = at < to ? Math.min(to - at, lengths[at - from] ?? 0) : 0;
    while (at + length < all.length && all[length] === all[at + length]) length++;
    if (at + length > to) [from, to] = [at, at + length];
    lengths.push(length);
  }
  return lengths.slice(pattern.length + 1);
}

/** Whether a message is the end of another: clients that cut by tokens cut inside one. */
function isEndOf(message: ChatMessage | undefined, whole: ChatMessage | undefined): boolean {
  if (message === undefined || message.role !== whole?.role) return false;
  const text = messageText(message);
  return text !== "" && messageText(whole).endsWith(text);
}

/** Tool calls and their results, which some clients drop from a history. */
function isToolTraffic({ role, content, tool_calls: calls }: ChatMessage): boolean {
  if (role === "tool" || role === "function") return true;
  return (Array.isArray(calls) && calls.length > 0) || (Array.isArray(content) && content.some(isCall));
}

/** Digest of a message's meaning. */
export function meaningOf(message: ChatMessage): Digest {
  return meaningDigest(message, messageDigest(message));
}
