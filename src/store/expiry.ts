import { type ConversationId, type Label, labelsIn, type NodeId, type TurnId } from "../core/index.js";
import { type Cuts, cut, isLeft, type LoadedState, loadScopes, removeTurns, turnsOf } from "./cuts.js";
import { type Database, type ReadRows, sql } from "./database.js";
import { snapshotStatements } from "./scopes.js";
import type { User } from "./store.js";
import { removeScopes, unusedUser } from "./users.js";

/** See `Store.expire`. One transaction for each user. */
export async function expire(database: Database, user: User, before: number): Promise<number> {
  const count = await database.hold(user, async (transaction) => {
    const expired: Awaited<ReturnType<typeof expireIn>>[] = [];
    for (const loaded of await loadScopes(transaction.read, user))
      expired.push(await expireIn(transaction.read, loaded, before));
    const statements = expired.flatMap((one) => one.statements);
    if (statements.length > 0) await transaction.commit([...statements, unusedUser(user)]);
    return expired.reduce((sum, one) => sum + one.count, 0);
  });
  // Also erases the log; the file's free space is not searched.
  if (count > 0) await database.erase([]);
  return count;
}

/** Counts and removes turns and memories that were not used since a time. */
async function expireIn(read: ReadRows, { version, state }: LoadedState, before: number) {
  const { scopeId } = version;
  const old = [scopeId, before];
  const [conversations, used, singles, writes] = await Promise.all([
    read<{ id: ConversationId }>("select id from conversations where scope_id = $1 and used_at < $2", old),
    read("select id from conversations where scope_id = $1 and used_at >= $2 limit 1", old),
    read<{ id: TurnId }>("select id from turns where scope_id = $1 and conversation_id is null and at < $2", old),
    read<{ at: number }>("select at from writes where scope_id = $1", [scopeId]),
  ]);
  const oldWrites = writes.filter(({ at }) => at < before).length;
  if (conversations.length + singles.length + oldWrites === 0) return { count: 0, statements: [] };
  const cuts: Cuts = new Map();
  for (const { id } of conversations) cut(cuts, id, 0 as TurnId);
  for (const { id } of singles) cut(cuts, null, id);
  const named = new Set<Label>();
  const removed = new Set<TurnId>();
  let left = 0;
  for await (const { turn } of turnsOf(read, scopeId)) {
    if (!isLeft(cuts, turn)) removed.add(turn.id);
    else {
      left++;
      for (const label of [...labelsIn(turn.injection), ...turn.requested]) named.add(label);
    }
  }
  // A conversation may have lost all its turns, and must remember why.
  if (left === 0 && used.length === 0 && writes.length === oldWrites)
    return { count: removed.size, statements: removeScopes([scopeId]) };
  const live = "select turn_id as turn, leaf from requests where scope_id = $1 and evicted = 0";
  for (const { turn, leaf } of await read<{ turn: TurnId; leaf: NodeId }>(live, [scopeId]))
    if (removed.has(turn)) state.index.evict(leaf);
  state.forget(state.register.keepOnly(named));
  const forgetConversation = "delete from conversations where scope_id = $1 and id = $2";
  const statements = [
    ...removeTurns(scopeId, cuts),
    sql("delete from writes where scope_id = $1 and at < $2", scopeId, before),
    ...conversations.map(({ id }) => sql(forgetConversation, scopeId, id)),
    ...snapshotStatements(version, state.stored()).statements,
  ];
  return { count: removed.size + oldWrites, statements };
}
