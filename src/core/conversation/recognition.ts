/* Recognition: which conversation a history without a name continues. */

import type { Digest, TurnId } from "../text/ids.js";
import type { ChatMessage } from "../text/message.js";
import { instructionsAtHead, meaningOf } from "../text/message.js";
import type { Conversation } from "./conversation.js";

/** A history's plain messages without its instructions, and their meanings. */
export interface UnnamedHistory {
  readonly messages: readonly ChatMessage[];
  readonly meant: readonly Digest[];
}

/** Null: a first message, which continues nothing. */
export function unnamedHistory(all: readonly ChatMessage[]): UnnamedHistory | null {
  const messages = all.slice(instructionsAtHead(all));
  return messages.some(isAnswer) ? { messages, meant: messages.map(meaningOf) } : null;
}

/**
 * How many messages of a history a conversation has: those of a whole path of its turns, and the answer after it with what follows. An answer
 * that no turn continues yet is not known, and counts as the path's. 0: the history does not begin as the conversation, or with no answer.
 */
export function commonMessages(conversation: Conversation, { messages, meant }: UnnamedHistory): number {
  let most = 0;
  const open: { readonly turn: TurnId | null; readonly covered: number }[] = [{ turn: null, covered: 0 }];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const { turn, covered } = path;
    const next = conversation.childrenOf(turn);
    const shared = next.map((child) => equalFrom(child.meant, meant, covered));
    const further = shared.reduce((longest, one) => Math.max(longest, one), 0);
    const isAnswered = covered > 0 && isAnswer(messages[covered]);
    if (isAnswered && (next.length === 0 || further > 0)) most = Math.max(most, covered + further);
    for (const [at, child] of next.entries())
      if (shared[at] === child.meant.length) open.push({ turn: child.id, covered: covered + child.meant.length });
  }
  return most;
}

/** The conversation that has most of a history's messages; null: none has any, or two have as many. */
export function longestMatch<Id>(matches: readonly { readonly id: Id; readonly common: number }[]): Id | null {
  const [best, second] = matches.filter(({ common }) => common > 0).toSorted((a, b) => b.common - a.common);
  return best === undefined || best.common === second?.common ? null : best.id;
}

function equalFrom(given: readonly Digest[], history: readonly Digest[], from: number): number {
  let equal = 0;
  while (equal < given.length && given[equal] === history[from + equal]) equal++;
  return equal;
}

function isAnswer(message: ChatMessage | undefined): boolean {
  return message?.role === "assistant";
}
