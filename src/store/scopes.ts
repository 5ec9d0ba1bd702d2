import {
  changesFromJson,
  changesTo,
  changesToJson,
  EMPTY_SCOPE,
  foldScope,
  type MemoryId,
  type Scope,
  type StoredScope,
} from "../core/index.js";
import { type Database, type ReadRows, type Statement, sql, type UserTransaction } from "./database.js";
import { promptInsert, promptUpdate } from "./prompts.js";
import { requestStatement } from "./requests.js";
import { decoded, decodedJson, scopeName } from "./rows.js";
import {
  type HeldScope,
  type KnownScope,
  type PendingSourceDeletions,
  type ScopeDelta,
  type ScopeVersion,
  type Store,
  StoreUnavailableError,
  type User,
} from "./store.js";
import { NO_HEAD, turnStatements } from "./turns.js";

/** Commits between two snapshots: all of them are applied when a user returns. */
const CHANGES_UP_TO = 64;

/** A user's row, with the scope's and one of its changes. */
interface StateRow {
  readonly userNumber: number;
  readonly forgotten: string | null;
  /** Null: the scope has no row. */
  readonly scopeId: number | null;
  readonly version: number;
  readonly snapshotVersion: number;
  /** Only in the first row, and if the known state is older. */
  readonly snapshot: string | null;
  /** Null: no changes since the snapshot, or the known state. */
  readonly changes: string | null;
}

type StoredState = Pick<HeldScope, "version" | "userNumber" | "newer">;

const STATE = `select u.id as "userNumber", u.forgotten, s.id as "scopeId", s.version, s.snapshot_version as "snapshotVersion",
  case when s.snapshot_version > $4 and (c.version is null or c.version = s.snapshot_version + 1) then s.snapshot end as snapshot,
  c.changes
  from scopes u left join scopes s on s.tenant = u.tenant and s.user_id = u.user_id and s.agent_id = $3
  left join changes c on c.scope_id = s.id and c.version > $4 and c.version > s.snapshot_version
  where u.tenant = $1 and u.user_id = $2 and u.agent_id = '' order by c.version`;

/** Whether a row of `scopes` (`s`) has a state or waiting writes; it has none if nothing was stored yet, or all was removed. */
export const HAS_STATE = `(s.version > s.snapshot_version or s.snapshot is not null
  or exists (select 1 from writes w where w.scope_id = s.id))`;

/** Reads a scope, or only what came after a known state, in one query. */
export async function readScope(read: ReadRows, scope: Scope, known: KnownScope | null): Promise<StoredState> {
  const rows = await read<StateRow>(STATE, [...scopeName(scope), known?.version.version ?? -1]);
  const [first] = rows;
  const userNumber = first?.userNumber ?? 0;
  const forgotten = [...forgottenIn(first?.forgotten ?? null).keys()];
  if (first === undefined || first.scopeId === null)
    return { version: null, userNumber, newer: withForgotten(EMPTY_SCOPE, forgotten) };
  const { scopeId, version, snapshotVersion, snapshot } = first;
  // A server may have lost the last commits, such as a standby that took over.
  if (known !== null && (known.version.scopeId !== scopeId || version < known.version.version))
    return readScope(read, scope, null);
  const stored = { version: { scopeId, version, snapshotVersion }, userNumber };
  // Forgetting changes no version of a scope without a state.
  if (known?.version.version === version && version > 0) return { ...stored, newer: null };
  if (known?.stored === null) return readScope(read, scope, null);
  const isWhole = known === null || snapshotVersion > known.version.version;
  const later = rows.flatMap(({ changes }) => changes ?? []);
  if (later.length !== version - (isWhole ? snapshotVersion : known.version.version))
    throw new StoreUnavailableError("damaged", { cause: new Error("changes of a scope are missing") });
  const changes = [...(snapshot === null ? [] : [snapshot]), ...later].map((each) =>
    decoded("a scope's changes", each, changesFromJson),
  );
  const newer = foldScope(isWhole ? EMPTY_SCOPE : known.stored(), changes);
  return { ...stored, newer: withForgotten(newer, forgotten) };
}

/** The memories that a user forgot, each with the time of the newest prompt that had it; null: none had. */
type ForgottenMemories = ReadonlyMap<MemoryId, number | null>;

function forgottenIn(forgotten: string | null): ForgottenMemories {
  return new Map(forgotten === null ? [] : decodedJson<[MemoryId, number | null][]>("forgotten memories", forgotten));
}

interface UserRow {
  readonly id: number;
  readonly forgotten: ForgottenMemories;
  /** What the memory source must still delete; null: nothing. */
  readonly pending: PendingSourceDeletions | null;
}

export async function userRow(read: ReadRows, { tenant, userId }: User): Promise<UserRow | null> {
  const text = "select id, forgotten, pending from scopes where tenant = $1 and user_id = $2 and agent_id = ''";
  const [row] = await read<{ id: number; forgotten: string | null; pending: string | null }>(text, [tenant, userId]);
  if (row === undefined) return null;
  const pending = row.pending === null ? null : decodedJson<PendingSourceDeletions>("pending deletions", row.pending);
  return { id: row.id, forgotten: forgottenIn(row.forgotten), pending };
}

/** A memory is forgotten with every agent, so the user's row has it. */
function withForgotten(state: StoredScope, forgotten: readonly MemoryId[]): StoredScope {
  return { ...state, register: { ...state.register, forgotten } };
}

/** Creates missing rows of a scope and its user. */
export async function begin(database: Database, scope: Scope, at: number): Promise<number> {
  const find = async () => {
    const { userId, tenant } = scope;
    const text = "select id, agent_id as agent from scopes where tenant = $1 and user_id = $2 and agent_id in ('', $3)";
    const rows = await database.read<{ id: number; agent: string }>(text, [tenant, userId, scope.agentId ?? ""]);
    const user = rows.find(({ agent }) => agent === "");
    return rows.some(({ agent }) => agent === (scope.agentId ?? "")) ? user?.id : undefined;
  };
  const known = await find();
  if (known !== undefined) return known;
  const text = `insert into scopes (tenant, user_id, agent_id, created_at) values ($1, $2, $3, $4)
    on conflict (tenant, user_id, agent_id) do nothing`;
  const names = [scopeName({ ...scope, agentId: null }), scopeName(scope)];
  await database.write(names.map((name) => sql(text, ...name, at)));
  return (await find()) ?? 0;
}

export function scopesIn(database: Database) {
  const { read } = database;
  return {
    begin: (scope, at) => begin(database, scope, at),

    async userNumber(user) {
      return (await userRow(read, user))?.id ?? 0;
    },

    async find(scope) {
      const text = `select s.id from scopes s where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3 and ${HAS_STATE}`;
      const [row] = await read<{ id: number }>(text, scopeName(scope));
      return row?.id ?? null;
    },

    hold: (scope, known, work) =>
      database.hold(scope, async (transaction) => {
        // No other process writes, so the scope in memory is the stored one.
        const isCurrent = known !== null && !database.isShared;
        const state = isCurrent
          ? { version: known.version, userNumber: known.userNumber, newer: null }
          : await readScope(transaction.read, scope, known);
        return work(heldScope(transaction, scope, state));
      }),
  } satisfies Partial<Store>;
}

/** Stores a changed scope, as its changes or as a snapshot in place of many; and its new version. */
function scopeStatements(version: ScopeVersion, { changes, whole }: ScopeDelta) {
  const { scopeId } = version;
  const next = version.version + 1;
  if (next - version.snapshotVersion < CHANGES_UP_TO) {
    const insert = "insert into changes (scope_id, version, changes) values ($1, $2, $3)";
    return {
      version: { ...version, version: next },
      statements: [
        sql("update scopes set version = $2 where id = $1", scopeId, next),
        sql(insert, scopeId, next, JSON.stringify(changesToJson(changes))),
      ],
    };
  }
  return snapshotStatements(version, whole());
}

/** The same, always with a snapshot. */
export function snapshotStatements({ scopeId, version }: ScopeVersion, state: StoredScope) {
  const next = version + 1;
  const update = "update scopes set version = $2, snapshot_version = $2, snapshot = $3 where id = $1";
  return {
    version: { scopeId, version: next, snapshotVersion: next },
    statements: [
      sql(update, scopeId, next, JSON.stringify(changesToJson(changesTo(state)))),
      sql("delete from changes where scope_id = $1", scopeId),
    ],
  };
}

function heldScope(transaction: UserTransaction, scope: Scope, state: StoredState): HeldScope {
  const { version: before } = state;

  async function commit(delta: ScopeDelta, others: (scopeId: number) => readonly Statement[]): Promise<ScopeVersion> {
    if (before === null) throw new Error("a scope is begun before it is committed");
    const { version, statements } = scopeStatements(before, delta);
    await transaction.commit([...statements, ...others(before.scopeId)], "apart");
    return version;
  }

  return {
    version: before,
    userNumber: state.userNumber,
    newer: state.newer,
    commitCompose: (record) =>
      commit(record.delta, (scopeId) => [
        ...turnStatements(scopeId, record),
        requestStatement(scopeId, record),
        ...promptInsert(scopeId, record, record.prompt, scope),
      ]),

    commitReport(delta, { turn, observed, prompt }) {
      const report = "update requests set report = $3 where scope_id = $1 and turn_id = $2";
      return commit(delta, (scopeId) => [
        sql(report, scopeId, turn, JSON.stringify(observed)),
        ...(prompt === null ? [] : [promptUpdate(scopeId, turn, prompt)]),
      ]);
    },

    commitEviction(delta, ids) {
      const evict = "update requests set evicted = 1 where scope_id = $1 and id = $2";
      return commit(delta, (scopeId) => ids.map((id) => sql(evict, scopeId, id)));
    },

    async commitWithdrawal(delta, turn) {
      const later = `select 1 as one from turns own join turns t on t.scope_id = own.scope_id and t.id > own.id
        and coalesce(t.conversation_id, '') = coalesce(own.conversation_id, '')
        where own.scope_id = $1 and own.id = $2 and own.conversation_id is not null limit 1`;
      const isContinued = (await transaction.read(later, [before?.scopeId ?? 0, turn])).length > 0;
      return commit(delta, (scopeId) => [
        ...(["requests", "prompts"] as const).map((table) => deletionOf(table, scopeId, turn)),
        ...(isContinued ? [] : turnRemoval(scopeId, turn)),
      ]);
    },

    commitChanges: (delta) => commit(delta, () => []),
  };
}

/** Removes a turn that no other one continues, and its conversation if that has no other turn. */
function turnRemoval(scopeId: number, turn: number): Statement[] {
  const own = "select t.conversation_id from turns t where t.scope_id = $1 and t.id = $2";
  const others = "select 1 from turns t where t.scope_id = $1 and t.conversation_id = conversations.id and t.id <> $2";
  const conversation = `delete from conversations where scope_id = $1 and id = (${own}) and not exists (${others})`;
  return [sql(conversation, scopeId, turn), deletionOf("messages", scopeId, turn), deletionOf("turns", scopeId, turn)];
}

export function deletionOf(
  table: "messages" | "prompts" | "requests" | "turns" | "writes",
  scopeId: number,
  turn: number,
): Statement {
  const column = table === "turns" ? "id" : "turn_id";
  const others = table === "messages" ? ` and ${NO_HEAD}` : "";
  return sql(`delete from ${table} where scope_id = $1 and ${column} = $2${others}`, scopeId, turn);
}
