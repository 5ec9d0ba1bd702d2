import type { MemoryId, Scope, SentAfter } from "../core/index.js";
import { parsedJson } from "../core/text/json.js";
import { type Database, type ReadRows, type SqlValue, type Statement, sql } from "./database.js";
import { agentIn, decodeAnswer, decodedJson } from "./rows.js";
import { begin, HAS_STATE, readScope, userRow } from "./scopes.js";
import type { ExportedRow, ExportedUser, PendingSourceDeletions, Store, User, UsersFound } from "./store.js";

/** Users on a page of a walk: some milliseconds. */
const PAGE = 100;
/** Tables whose rows are deleted with a scope. */
const OF_SCOPES = ["changes", "conversations", "turns", "messages", "requests", "prompts", "writes"] as const;

/** The rows of a user's scopes, the user's own row included. */
export async function scopeRows(read: ReadRows, { tenant, userId }: User) {
  const text = `select s.id, s.agent_id as agent, case when ${HAS_STATE} then 1 else 0 end as "hasState" from scopes s
    where s.tenant = $1 and s.user_id = $2 order by s.agent_id`;
  const rows = await read<{ id: number; agent: string; hasState: number }>(text, [tenant, userId]);
  return rows.map(({ id, agent, hasState }) => {
    const scope: Scope = { tenant, userId, agentId: agentIn(agent) };
    return { id, scope, hasState: hasState === 1 };
  });
}

/** Removes scopes with all that belongs to them. The user's row stays, for {@link unusedUser} to remove. */
export function removeScopes(scopeIds: readonly number[]): Statement[] {
  const ended = "update scopes set version = version + 1, snapshot_version = version + 1, snapshot = null";
  return scopeIds.flatMap((id) => [
    ...OF_SCOPES.map((table) => sql(`delete from ${table} where scope_id = $1`, id)),
    sql(`${ended} where id = $1 and agent_id = ''`, id),
    sql("delete from scopes where id = $1 and agent_id <> ''", id),
  ]);
}

/** Removes a user's row without state, content and other scopes. */
export function unusedUser({ tenant, userId }: User): Statement {
  const others = "exists (select 1 from scopes o where o.tenant = $1 and o.user_id = $2 and o.agent_id <> '')";
  const text = `delete from scopes where tenant = $1 and user_id = $2 and agent_id = '' and snapshot is null
    and version = snapshot_version and forgotten is null and pending is null and not ${others}
    and not exists (select 1 from writes w where w.scope_id = scopes.id)`;
  return sql(text, tenant, userId);
}

async function deleteUser(database: Database, user: User, isInSource: boolean, at: number): Promise<number> {
  // An unknown user may have memories in the source.
  if (isInSource) await begin(database, { ...user, agentId: null }, at);
  const { count, texts } = await database.hold(user, async (transaction) => {
    const scopes = await scopeRows(transaction.read, user);
    if (scopes.length === 0) return { count: 0, texts: [] };
    const texts: string[][] = [];
    for (const { id, scope } of scopes) texts.push(await textsOf(transaction.read, id, scope));
    const all = scopes.map(({ id }) => sql("delete from scopes where id = $1", id));
    const { tenant, userId } = user;
    const pending = JSON.stringify({ everything: true, memoryIds: [] } satisfies PendingSourceDeletions);
    const text = "insert into scopes (tenant, user_id, agent_id, created_at, pending) values ($1, $2, '', $3, $4)";
    const owed = isInSource ? [sql(text, tenant, userId, at, pending)] : [];
    await transaction.commit([...removeScopes(scopes.map(({ id }) => id)), ...all, ...owed]);
    return { count: scopes.filter(({ hasState }) => hasState).length, texts: texts.flat() };
  });
  if (texts.length > 0) await database.erase(texts);
  return count;
}

/** Texts of a scope, for which files are searched after a deletion. */
async function textsOf(read: ReadRows, id: number, scope: Scope): Promise<string[]> {
  const { newer } = await readScope(read, scope, null);
  const all = `select message from messages where scope_id = $1
    union all select addition as message from writes where scope_id = $1 limit 100`;
  const said = await read<{ message: string }>(all, [id]);
  return [...(newer?.register.blocks.map(({ text }) => text) ?? []), ...said.map(({ message }) => message)];
}

/** Without digests: a short text could be guessed from its digest. */
async function exportUser(read: ReadRows, user: User): Promise<ExportedUser> {
  const scopes: ExportedUser["scopes"][number][] = [];
  for (const { id, scope, hasState } of await scopeRows(read, user)) {
    if (!hasState) continue;
    const { newer } = await readScope(read, scope, null);
    const tables: Record<string, readonly ExportedRow[]> = {
      blocks: (newer?.register.blocks ?? []).map(snakeCased),
      memories: (newer?.register.versions ?? []).map(snakeCased),
      index_nodes: (newer?.nodes ?? []).map(({ anchor: _, ...node }) => snakeCased(node)),
    };
    for (const [table, columns] of Object.entries(EXPORTED)) {
      const text = `select ${columns} from ${table} where scope_id = $1 order by 1`;
      tables[table] = (await read<Record<string, SqlValue>>(text, [id])).map(withParsedJson);
    }
    scopes.push({ agentId: scope.agentId, tables });
  }
  const { forgotten = new Map<MemoryId, unknown>() } = (await userRow(read, user)) ?? {};
  return { scopes, forgottenMemories: [...forgotten.keys()].sort() };
}

const EXPORTED = {
  conversations: "id, used_at, forgotten_at, sent_after",
  turns: "id, conversation_id, at, section, response_id, engine_conversation",
  messages: "turn_id, conversation_id, message",
  requests: "turn_id, id, at, answer, report, evicted",
  prompts: `turn_id, conversation_id, request_id, at, model, engine, layout, policy, retention, prompt_tokens, expected_tokens,
    uncached_tokens, carried_tokens, miss_cause, miss_tokens, reported_prompt_tokens, reported_cached_tokens, first_token_ms`,
  writes: "id, queue, turn_id, at, exchanges, addition",
} as const;

/** How JSON columns are read. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  message: (text) => decodedJson("a message", text),
  report: (text) => decodedJson("a report", text),
  addition: (text) => decodedJson("an exchange", text),
  answer: decodeAnswer,
  sent_after(text) {
    const { root, tools } = decodedJson<SentAfter>("a conversation's tools", text);
    return { model: root.model, tools: tools.map(({ json }) => parsedJson(json)) };
  },
};

function withParsedJson(row: Readonly<Record<string, SqlValue>>): ExportedRow {
  const parsed = Object.entries(row).map(([column, value]) => {
    const read = READERS[column];
    return [column, read !== undefined && typeof value === "string" ? read(value) : value];
  });
  return Object.fromEntries(parsed);
}

function snakeCased(row: object): ExportedRow {
  const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [snake(name), value]));
}

/** Removes a deleted user's row with the last pending memory. */
async function deletedFromSource(database: Database, user: User, memoryId: MemoryId | null): Promise<void> {
  const { tenant, userId } = user;
  await database.hold(user, async (transaction) => {
    const before = (await userRow(transaction.read, user))?.pending;
    if (!before) return;
    const memoryIds = before.memoryIds.filter((id) => id !== memoryId);
    const everything = before.everything && memoryId !== null;
    const left = everything || memoryIds.length > 0 ? JSON.stringify({ everything, memoryIds }) : null;
    const text = "update scopes set pending = $3 where tenant = $1 and user_id = $2 and agent_id = ''";
    await transaction.commit([sql(text, tenant, userId, left), unusedUser(user)]);
  });
}

/** A page of a walk through users: all, by number, or one tenant's, by name. @param where a condition on a user's row `u` */
async function walk<Cursor extends number | string>(
  read: ReadRows,
  { after, tenant, value }: { readonly after: Cursor; readonly tenant?: string; readonly value?: SqlValue },
  where: (value: string) => string,
): Promise<UsersFound<Cursor>> {
  const key = tenant === undefined ? "u.id" : "u.user_id";
  const of = (place: string) => `u.agent_id = ''${tenant === undefined ? "" : ` and u.tenant = ${place}`}`;
  const own = tenant === undefined ? [] : [tenant];
  const page = `select ${key} as key from scopes u where ${key} > $1 and ${of("$2")} order by ${key} limit ${PAGE}`;
  const keys = await read<{ key: Cursor }>(page, [after, ...own]);
  const last = keys.at(-1)?.key;
  if (last === undefined) return { users: [], next: null };
  const text = `select u.tenant, u.user_id as "userId" from scopes u
    where ${key} > $1 and ${key} <= $2 and ${of("$3")} and ${where(`$${own.length + 3}`)} order by ${key}`;
  const users = await read<User>(text, [after, last, ...own, ...(value === undefined ? [] : [value])]);
  return { users, next: keys.length < PAGE ? null : last };
}

/** Whether a user has a scope `s` that meets a condition. */
function hasScope(condition: string): string {
  return `exists (select 1 from scopes s where s.tenant = u.tenant and s.user_id = u.user_id and (${condition}))`;
}

/** Whether something of a scope was used last before a time. */
const isOld = (before: string) => `
  exists (select 1 from conversations c where c.scope_id = s.id and c.used_at < ${before})
  or exists (select 1 from turns t where t.scope_id = s.id and t.conversation_id is null and t.at < ${before})
  or exists (select 1 from writes w where w.scope_id = s.id and w.at < ${before})`;
/** Whether the JSON of a snapshot or of changes contains a text. */
const hasText = (text: string) => `replace(s.snapshot, ${text}, '') <> s.snapshot or exists (select 1 from changes c
  where c.scope_id = s.id and replace(c.changes, ${text}, '') <> c.changes)`;

export function usersIn(database: Database) {
  const { read } = database;
  return {
    async scopesOf(user) {
      const rows = await scopeRows(read, user);
      return rows.filter(({ hasState }) => hasState).map(({ scope }) => scope);
    },
    deleteUser: (user, isInSource, at) => deleteUser(database, user, isInSource, at),
    exportUser: (user) => exportUser(read, user),
    pendingInSource: async (user) => (await userRow(read, user))?.pending ?? null,
    deletedFromSource: (user, memoryId) => deletedFromSource(database, user, memoryId),
    users: (after) => walk(read, { after }, () => hasScope(HAS_STATE)),
    usersWithMemory: (tenant, id, after) =>
      walk(read, { after, tenant, value: JSON.stringify(id) }, (text) => hasScope(hasText(text))),
    usersWithOldTurns: (value, after) => walk(read, { after, value }, (before) => hasScope(isOld(before))),
    usersPendingInSource: (after) => walk(read, { after }, () => "u.pending is not null"),
  } satisfies Partial<Store>;
}
