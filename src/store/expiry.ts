import { type Label, labelsIn, type NodeId, type TurnId } from "../core/index.js";
import type { Database, ReadRows, Statement } from "./database.js";
import { type LoadedState, loadScopes, removeTurn, turnsOf } from "./forgetting.js";
import { snapshotStatements } from "./scopes.js";
import type { User } from "./store.js";
import { unusedMessages } from "./turns.js";
import { removeScopes, unusedUser } from "./users.js";

/** See `Store.expire`. One transaction for each user. */
export async function expire(database: Database, user: User, before: number): Promise<number> {
  const expired = await database.hold(user, async (transaction) => {
    const { read } = transaction;
    let count = 0;
    const statements: (readonly Statement[])[] = [];
    for (const loaded of await loadScopes(read, user)) {
      const expired = await expireIn(read, loaded, before);
      if (expired === null) continue;
      count += expired.count;
      statements.push(expired.statements);
    }
    if (statements.length > 0) await transaction.commit([...statements.flat(), unusedUser(user)]);
    return count;
  });
  // Out of the log, too; the file's free space is not searched.
  if (expired > 0) await database.erase([]);
  return expired;
}

interface ExpiredInScope {
  /** Turns that go. */
  readonly count: number;
  readonly statements: readonly Statement[];
}

/** What was not used in a scope since a time, and memories that nothing left refers to; null: nothing. */
async function expireIn(
  read: ReadRows,
  { version, state }: LoadedState,
  before: number,
): Promise<ExpiredInScope | null> {
  const { scopeId } = version;
  const [conversations, used, singles] = await Promise.all([
    read<{ id: string }>("select id from conversations where scope_id = $1 and used_at < $2", [scopeId, before]),
    read("select id from conversations where scope_id = $1 and used_at >= $2 limit 1", [scopeId, before]),
    read<{ id: number }>("select id from turns where scope_id = $1 and conversation_id is null and at < $2", [
      scopeId,
      before,
    ]),
  ]);
  if (conversations.length + singles.length === 0) return null;
  const gone = {
    conversations: new Set(conversations.map(({ id }) => id)),
    singles: new Set(singles.map(({ id }) => id)),
  };
  const named = new Set<Label>();
  const removed = new Set<TurnId>();
  let left = 0;
  for await (const { turn } of turnsOf(read, scopeId)) {
    const { id, conversationId } = turn;
    if (conversationId === null ? gone.singles.has(id) : gone.conversations.has(conversationId)) removed.add(id);
    else {
      left++;
      for (const label of [...labelsIn(turn.injection), ...turn.requested]) named.add(label);
    }
  }
  // A conversation may have lost all of its turns, and is not to forget why.
  if (left === 0 && used.length === 0) return { count: removed.size, statements: removeScopes([scopeId]) };
  const live = `select turn_id as turn, leaf from requests where scope_id = $1 and evicted = 0`;
  for (const { turn, leaf } of await read<{ turn: TurnId; leaf: NodeId }>(live, [scopeId]))
    if (removed.has(turn)) state.evict(leaf, turn);
  state.forget(state.register.keepOnly(named));
  const statements = [
    ...[...gone.conversations].flatMap((id) => removeConversation(scopeId, id)),
    ...[...gone.singles].flatMap((turn) => removeTurn(scopeId, turn)),
    ...unusedMessages(scopeId),
    ...snapshotStatements(version, state.stored()).statements,
  ];
  return { count: removed.size, statements };
}

function removeConversation(scopeId: number, id: string): Statement[] {
  const values = [scopeId, id];
  const turns = "select id from turns where scope_id = $1 and conversation_id = $2";
  return [
    { text: `delete from requests where scope_id = $1 and turn_id in (${turns})`, values },
    { text: "delete from messages where scope_id = $1 and conversation_id = $2", values },
    { text: "delete from turns where scope_id = $1 and conversation_id = $2", values },
    { text: "delete from conversations where scope_id = $1 and id = $2", values },
  ];
}
