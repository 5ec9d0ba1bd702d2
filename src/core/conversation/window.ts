/*
 * Windows: histories that do not begin where the conversation's newest prompt begins, because the client cut them at the front (the last n
 * messages, a token limit, a summary in place of what was cut), or because memprefix did. Whole messages are compared, by meaning: what a
 * client shortened, changed or moved is another message, and its old form is not put back.
 */

import type { Digest } from "../text/ids.js";
import { type ChatMessage, isCall, meaningOf, withoutMarks } from "../text/message.js";

/** How what a client sent stands to the messages of its conversation's newest prompt. `fresh`: how many of the last sent messages are new. */
export type Window =
  /** The end of what is stored, and new messages after it. */
  | { readonly kind: "cut"; readonly fresh: number }
  /** The first stored message, then the end of what is stored, then new ones: those between were cut, or removed. */
  | { readonly kind: "pinned"; readonly fresh: number }
  /** What is stored, or its end, without tools' calls and results, then new messages. */
  | { readonly kind: "pruned"; readonly fresh: number }
  /** Messages that the newest prompt does not have, then everything that it has, then new ones. */
  | { readonly kind: "longer"; readonly inFront: number; readonly fresh: number }
  /** Other messages in place of those that were cut (a summary), or the same in another order, then stored ones, then new ones. */
  | { readonly kind: "summarised" };

/**
 * Recognises a window. Null: everything that is stored is sent, or a message in the middle is missing or changed (an edit), or nothing is
 * alike. O(stored + sent).
 */
export function findWindow(stored: readonly ChatMessage[], sent: readonly ChatMessage[]): Window | null {
  const given = sent.map(meaningOf);
  const found = windowOf(stored, sent, given);
  if (found !== null) return found === "whole" ? null : found;
  const said = stored.filter((message) => !isToolTraffic(message));
  const before = sent.slice(
    0,
    sent.findLastIndex(({ role }) => role === "user"),
  );
  // One that sends some sends them as they are now.
  if (said.length === stored.length || said.length === 0 || before.some(isToolTraffic)) return null;
  const withoutTools = windowOf(said, sent, given);
  if (withoutTools === "whole") return { kind: "pruned", fresh: sent.length - said.length };
  return withoutTools?.kind === "cut" ? { kind: "pruned", fresh: withoutTools.fresh } : null;
}

/** "whole": everything stored is given, with new messages after it. */
function windowOf(
  stored: readonly ChatMessage[],
  sent: readonly ChatMessage[],
  given: readonly Digest[],
): Window | "whole" | null {
  const known = stored.map(meaningOf);
  if (known.length < given.length && known.every((meaning, at) => meaning === given[at])) return "whole";
  const { length, fresh } = longestOverlap(known, given);
  if (length === 0) return null;
  const inFront = given.length - fresh - length;
  if (length === known.length) return { kind: "longer", inFront, fresh };
  if (inFront > 0 && given[0] === known[0]) return inFront === 1 ? { kind: "pinned", fresh } : null;
  const cut = new Set<Digest | undefined>(known.slice(0, known.length - length));
  // Answers repeat; what a user said before is new only as the question.
  const isMoved = sent
    .slice(-fresh, -1)
    .some(({ role }, at) => role === "user" && cut.has(given[inFront + length + at]));
  return inFront > 0 || isMoved ? { kind: "summarised" } : { kind: "cut", fresh };
}

/** A window that can be put after what was cut of it. */
export type ContinuedWindow = Exclude<Window, { readonly kind: "summarised" }>;

/**
 * What is stored, then what is new: of the messages that were sent what was sent now, the others as they were, without cache marks, which would
 * count against the provider's limit. O(stored + sent).
 *
 * @param sent without those in front of a longer window
 */
export function withCut(
  stored: readonly ChatMessage[],
  sent: readonly ChatMessage[],
  { kind, fresh }: ContinuedWindow,
): { readonly messages: readonly ChatMessage[]; readonly added: number } {
  const known = sent.length - fresh;
  if (kind === "cut" || kind === "longer") {
    const cut = stored.slice(0, stored.length - known).map(withoutMarks);
    return { messages: [...cut, ...sent], added: cut.length };
  }
  const messages: ChatMessage[] = sent.slice(known).reverse();
  let left = known - 1;
  for (const message of stored.toReversed()) {
    const now = sent[left];
    const isSent = now !== undefined && meaningOf(now) === meaningOf(message);
    messages.push(isSent ? now : withoutMarks(message));
    if (isSent) left--;
  }
  return { messages: messages.reverse(), added: stored.length - known };
}

/** The longest end of `known` that occurs in `given` with at least one message after it; of several, the last. */
function longestOverlap(known: readonly Digest[], given: readonly Digest[]) {
  let best = { length: 0, fresh: 0 };
  for (const [at, length] of commonPrefixes(known.toReversed(), given.toReversed()).entries())
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

/** Tool calls and their results, which some clients drop from a history. */
function isToolTraffic({ role, content, tool_calls: calls }: ChatMessage): boolean {
  if (role === "tool" || role === "function") return true;
  return (Array.isArray(calls) && calls.length > 0) || (Array.isArray(content) && content.some(isCall));
}
