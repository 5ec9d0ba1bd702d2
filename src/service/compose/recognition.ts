import {
  type ChatMessage,
  type ConversationId,
  commonMessages,
  type Digest,
  longestMatch,
  unnamedHistory,
} from "../../core/index.js";
import type { Store } from "../../store/store.js";
import type { WorkingScope } from "../scopes/working-scopes.js";

/** Conversations with the same first message that are compared, those used last. */
const MOST_COMPARED = 16;

/** The scope's conversation that a history without a name begins as; null: none, or it is a first message. */
export async function recognise(
  store: Pick<Store, "conversationsWith">,
  working: WorkingScope,
  messages: readonly ChatMessage[],
): Promise<ConversationId | null> {
  const history = unnamedHistory(messages);
  if (history === null || !working.isStored) return null;
  const ids = await store.conversationsWith(working.scopeId, history.meant[0] as Digest, MOST_COMPARED);
  const loaded = await Promise.all(ids.map(async (id) => ({ id, ...(await working.conversation(id)) })));
  return longestMatch(loaded.map(({ id, turns }) => ({ id, common: commonMessages(turns, history) })));
}
