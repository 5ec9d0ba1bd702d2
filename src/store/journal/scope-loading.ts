import {
  type ConversationId,
  EMPTY_SCOPE,
  type MemoryId,
  type Scope,
  ScopeFolding,
  type StoredScope,
  type Turn,
} from "../../core/index.js";
import { isSameVersion, type LoadedScope, type ScopesFound } from "../api/store.js";
import { conversationNumber, memoryHash } from "../database/digest-seal.js";
import { JournalVersion } from "./commits.js";
import { CONVERSATION_PAGE, type JournalScope } from "./journal-database.js";
import { decodedOf, type JournalParts } from "./journal-parts.js";
import type { KnownScopes } from "./known-scopes.js";
import { readConversation, TurnReading } from "./turn-reading.js";

/**
 * See `Store.loadScope`.
 *
 * @param known gets the conversation's records
 */
export async function loadScope(
  parts: JournalParts,
  scope: Scope,
  conversationId: ConversationId | null = null,
  known: KnownScopes | null = null,
): Promise<LoadedScope> {
  const number = conversationId === null ? undefined : conversationNumber(conversationId, parts.digests);
  const stored = await parts.database.load(scope, number);
  const { version, deletions, newestAt } = stored;
  if (version === null)
    return { scope: withForgotten(EMPTY_SCOPE, stored), version, deletions, newestAt, conversation: [] };
  const state = withForgotten(stateOf(parts, version.scopeId, stored), stored);
  const { snapshot, behind } = stored;
  const book = {
    behind: {
      records: behind.length,
      length: behind.reduce((length, { changes }) => length + (changes?.length ?? 0), 0),
      snapshotLength: snapshot?.data.length ?? 0,
    },
  };
  const loaded = { scope: state, version: new JournalVersion(version, book), deletions, newestAt };
  if (conversationId === null) return { ...loaded, conversation: null };
  const reading = new TurnReading(parts, version.scopeId);
  reading.begin(stored.conversation);
  // A longer one is read on, and would stay whole.
  if (stored.conversation.length < CONVERSATION_PAGE)
    known?.loaded(scope, version, { id: conversationId, reading, records: stored.conversation });
  const conversation = await conversationOf(parts, scope, stored, reading, conversationId);
  return { ...loaded, conversation };
}

/** Null where a long one, which is read in several transactions, has changed meanwhile. */
async function conversationOf(
  parts: JournalParts,
  scope: Scope,
  { version, conversation: newest }: JournalScope,
  reading: TurnReading,
  id: ConversationId,
): Promise<readonly Turn[] | null> {
  const turns = await readConversation(reading, id);
  const isOfVersion =
    newest.length < CONVERSATION_PAGE || isSameVersion(await parts.database.versionOf(scope), version);
  return isOfVersion ? turns : null;
}

/** A scope's state: its snapshot, and the changes after it. Forgotten memories are not in it. */
export function stateOf(
  { states }: Pick<JournalParts, "states">,
  scopeId: number,
  { snapshot, behind }: JournalScope,
): StoredScope {
  const before =
    snapshot === null ? EMPTY_SCOPE : decodedOf({ scopeId, n: snapshot.n }, () => states.decodeState(snapshot.data));
  if (behind.length === 0) return before;
  const folding = new ScopeFolding(before);
  for (const { n, changes } of behind)
    if (changes !== null) folding.take(decodedOf({ scopeId, n }, () => states.decodeChanges(changes)));
  return folding.stored();
}

/** A memory is forgotten with every agent, so that is not each scope's own to say. */
function withForgotten(state: StoredScope, { forgotten }: JournalScope): StoredScope {
  return { ...state, register: { ...state.register, forgotten } };
}

/** See `Store.scopesWithMemory`. Of the scopes that may have it, those are loaded: another memory may have its hash. */
export async function findScopesWithMemory(
  parts: JournalParts,
  tenant: string,
  memoryId: MemoryId,
  after: number,
): Promise<ScopesFound> {
  const hash = memoryHash(memoryId, parts.digests);
  const { scopes: candidates, next } = await parts.database.withMemory(tenant, hash, after);
  const scopes: ScopesFound["scopes"][number][] = [];
  for (const { scope } of candidates) {
    const { register } = (await loadScope(parts, scope)).scope;
    if (register.versions.some((version) => version.memoryId === memoryId)) scopes.push(scope);
  }
  return { scopes, next };
}
