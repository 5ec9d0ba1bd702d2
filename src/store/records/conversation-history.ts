import type { ChatMessage } from "../../core/index.js";
import type { StoredHistory } from "../api/store.js";
import type { Statements } from "../database/statements.js";
import type { StoredMessages } from "./stored-messages.js";

/**
 * What was said in a conversation up to its newest turn. Follows that turn's parents, so a branch that was left is not in it; ends at a
 * message that was erased, or a turn that is gone.
 */
export function readConversationHistory(
  statements: Statements,
  messages: StoredMessages,
  scopeId: number,
  conversationId: string,
): StoredHistory | null {
  const newest = statements.newestTurn.get({ scopeId, conversationId });
  if (newest === undefined) return null;
  const said: (readonly ChatMessage[])[] = [];
  const promptTokens: number[] = [];
  let isWhole = true;
  for (let next: number | null = newest.id; next !== null; ) {
    const turn = statements.turn.get({ scopeId, id: next });
    const given = turn === undefined ? null : messages.wholeOf(turn.given);
    isWhole = given !== null;
    if (turn === undefined || given === null) break;
    said.push(given);
    // A turn that was only said again was not sent.
    if (turn.promptTokens > 0) promptTokens.push(turn.promptTokens);
    next = turn.parent;
  }
  const head = statements.head.get({ scopeId, digest: newest.head }) ?? null;
  return {
    head: head === null ? null : messages.wholeOf(head),
    newest: said[0]?.length ?? 0,
    messages: said.reverse().flat(),
    isWhole,
    promptTokens,
  };
}
