import {
  type ChatMessage,
  Conversation,
  type ConversationId,
  type Digest,
  type HistoryName,
  type Past,
  possibleSections,
  recallPast,
  type ToolMemories,
} from "../../core/index.js";
import type { Store, StoredHistory } from "../../store/api/store.js";
import type { WorkingScope } from "../scopes/working-scope.js";

/** What is stored of a request's past. Planning is synchronous, so it is read before. */
export interface StoredPast {
  /** Null: the `single` layout. */
  readonly conversation: { readonly id: ConversationId; readonly turns: Conversation } | null;
  /** What was said; null where the request says it itself, and where nothing is stored. */
  readonly history: StoredHistory | null;
  readonly isOurs: (section: Digest) => boolean;
  /** The past as the request's own messages say it; null where that was not needed here. */
  readonly recalled: Past | null;
  /** Whether any of it was read from the store: it may be newer than the scope in memory. */
  readonly isRead: boolean;
}

/** A request, as far as its past depends on it. */
interface PastRequest {
  readonly conversationId: ConversationId | null;
  readonly messages: readonly ChatMessage[];
  readonly history: HistoryName;
  readonly toolMemories: ToolMemories | null;
}

/** Reads what is stored of a request's past, and not in memory. Mostly nothing is asked of the store. Changes nothing. */
export async function readPast(
  store: Pick<Store, "loadConversation" | "knownHistory" | "findHistory" | "knownSections">,
  { scope, state, base }: Pick<WorkingScope, "scope" | "state" | "base">,
  { conversationId: id, messages, history: name, toolMemories }: PastRequest,
): Promise<StoredPast> {
  const known = new Set<Digest>();
  const isOurs = (section: Digest) => known.has(section);
  const learn = async (said: readonly ChatMessage[]) => {
    const asked = possibleSections(said);
    if (asked.length > 0) for (const section of await store.knownSections(scope, asked)) known.add(section);
  };
  await learn(messages);
  if (id === null) return { conversation: null, history: null, isOurs, recalled: null, isRead: known.size > 0 };
  const loaded = state.loadedConversation(id);
  // Of a scope that was never stored there is nothing to read.
  const stored = loaded === undefined && base.version !== null ? await store.loadConversation(scope, id) : [];
  const turns = loaded ?? new Conversation(stored);
  const conversation = { id, turns };
  const recalled = recallPast({ conversation, messages, isOurs, toolMemories });
  const isCut = turns.newest !== undefined && recalled.history.turns.at(-1)?.turn !== turns.newest;
  const isWanted = base.version !== null && (name === "stored" || isCut);
  const remembered = isWanted ? await store.knownHistory(scope, id, base.version) : null;
  const history = remembered ?? (isWanted ? await store.findHistory(scope, id, base.version) : null);
  // A client may have said it in a section's form.
  if (history !== null) await learn(history.messages);
  const isRead = known.size > 0 || history !== remembered || (loaded === undefined && turns.newest !== undefined);
  // With more sections known the same messages may say less.
  return { conversation, history, isOurs, recalled: history === null ? recalled : null, isRead };
}
