/* Windows: histories cut at the front by the client (the last n messages, a summary) or by memprefix. Compared by meaning, by whole messages. */

import type { Digest } from "../text/ids.js";
import { type ChatMessage, isCall, meaningOf, withoutMarks } from "../text/message.js";

/** How the sent messages relate to the conversation's newest prompt. `fresh`: how many of the last ones are new. */
export type Window =
  /** The end of what is stored, then new messages. */
  | { readonly kind: "cut"; readonly fresh: number }
  /** The first stored message, the end of what is stored, then new ones. */
  | { readonly kind: "pinned"; readonly fresh: number }
  /** What is stored, or its end, without tool calls and results, then new ones. */
  | { readonly kind: "pruned"; readonly fresh: number }
  /** Messages that the newest prompt lacks, then all of it, then new ones. */
  | { readonly kind: "longer"; readonly inFront: number; readonly fresh: number }
  /** A summary or reordered messages in front of stored ones, then new ones. */
  | { readonly kind: "summarised" };

/** Recognises a window. Null: everything is sent, the middle was edited, or nothing is alike. O(stored + sent). */
export function findWindow(stored: readonly ChatMessage[], sent: readonly ChatMessage[]): Window | null {
  const given = sent.map(meaningOf);
  const found = windowOf(stored, sent, given);
  if (found !== null) return found === "whole" ? null : found;
  const said = stored.filter((message) => !isToolTraffic(message));
  const before = sent.slice(
    0,
    sent.findLastIndex(({ role }) => role === "user"),
  );
  // Clients that send some tool messages send them as they are now.
  if (said.length === stored.length || said.length === 0 || before.some(isToolTraffic)) return null;
  const withoutTools = windowOf(said, sent, given);
  if (withoutTools === "whole") return { kind: "pruned", fresh: sent.length - said.length };
  return withoutTools?.kind === "cut" ? { kind: "pruned", fresh: withoutTools.fresh } : null;
}

/** "whole": everything stored is sent, with new messages after it. */
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
  // Answers repeat; a user's earlier words are new only as the question.
  const isMoved = sent
    .slice(-fresh, -1)
    .some(({ role }, at) => role === "user" && cut.has(given[inFront + length + at]));
  return inFront > 0 || isMoved ? { kind: "summarised" } : { kind: "cut", fresh };
}

export type ContinuedWindow = Exclude<Window, { readonly kind: "summarised" }>;

/** Stored messages, then new ones: as sent now, or without cache marks. @param sent without those in front of a longer window */
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

function longestOverlap(known: readonly Digest[], given: readonly Digest[]) {
  let best = { length: 0, fresh: 0 };
  for (const [at, length] of commonPrefixes(known.toReversed(), given.toReversed()).entries())
    if (at > 0 && length > best.length) best = { length, fresh: at };
  return best;
}

/** How much of `pattern` each position of `text` begins with: the Z function. */
function commonPrefixes(pattern: readonly Digest[], text: readonly Digest[]): readonly number[] {
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

function isToolTraffic({ role, content, tool_calls: calls }: ChatMessage): boolean {
  if (role === "tool" || role === "function") return true;
  return (Array.isArray(calls) && calls.length > 0) || (Array.isArray(content) && content.some(isCall));
}
