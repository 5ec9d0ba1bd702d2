import type { MemoryId, Scope } from "../../core/index.js";
import type { DeletionCounts } from "../api/store.js";
import { damagedRecord, sumOfSnapshot } from "../journal/damaged-record.js";
import {
  CONVERSATION_PAGE,
  type JournalRecord,
  type JournalScope,
  type Snapshot,
  WITH_TURNS,
} from "../journal/journal-database.js";
import type { NamedStatement, ServerReader } from "./connections.js";
import { newestRecord, numberOf, ROW_COLUMNS, readRecord, type StoredRecordRow, scopeKey } from "./rows.js";
import { SCHEMA } from "./schema.js";

/** A scope and its newest record, by its name: `$1` to `$3`. */
export const VERSION_OF = `select s.scope_id as "scopeId", coalesce(l.n, 0) as commits, coalesce(l.sum, 0) as sum
  from ${SCHEMA}.scopes s left join ${newestRecord("s.scope_id")} l on true where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3`;

/** What is read of a scope beside its records. */
const STATE: Readonly<Record<Exclude<keyof StateRow, "part">, string>> = {
  stateOf: `v."scopeId"`,
  commits: "v.commits",
  newestSum: "v.sum",
  newestAt: "coalesce(newest.at, 0)",
  users: "coalesce(d.users, 0)",
  memories: "coalesce(d.memories, 0)",
  forgotten: `array(select memory_id from ${SCHEMA}.forgotten_memories where tenant = $1 and user_id = $2)`,
  snapshotAt: "t.n",
  snapshotSum: "t.sum",
  snapshot: "t.data",
};
const NO_STATE = Object.keys(STATE).map((name) => `null as "${name}"`);
const NO_RECORD = ROW_COLUMNS.split(",").map(() => "null");

interface StateRow extends DeletionCounts {
  readonly part: "state";
  /** The scope's number; null: it is not stored. */
  readonly stateOf: number | null;
  readonly commits: number;
  /** Of the newest record. */
  readonly newestSum: number;
  readonly newestAt: number;
  readonly forgotten: readonly MemoryId[];
  readonly snapshotAt: number | null;
  readonly snapshotSum: number;
  readonly snapshot: string;
}
interface RecordRow extends StoredRecordRow {
  readonly part: "behind" | "said";
}

/**
 * A row for the state, and one for each record: whole records, as their checksums are of all of them. One statement sees one state of the
 * database, so it needs no transaction, whose statements a new user's first compose would wait for.
 */
const LOAD: NamedStatement = {
  name: "load",
  text: `with v as materialized (${VERSION_OF})
    select 'behind' as part, ${ROW_COLUMNS}, ${NO_STATE} from v join ${SCHEMA}.journal j on j.scope_id = v."scopeId"
    where j.changes is not null and j.n > coalesce((select t.n from ${SCHEMA}.snapshots t where t.scope_id = v."scopeId"), 0)
    union all
    select 'state', ${NO_RECORD}, ${Object.values(STATE)}
    from (select $4::integer as bucket) u left join v on true
    left join ${SCHEMA}.snapshots t on t.scope_id = v."scopeId" left join ${SCHEMA}.deletions d on d.bucket = u.bucket
    left join lateral (select at from ${SCHEMA}.journal where scope_id = v."scopeId" and kind = ${numberOf("composed")}
      order by n desc limit 1) newest on true
    union all
    select 'said', ${ROW_COLUMNS}, ${NO_STATE} from v cross join lateral (
      select * from ${SCHEMA}.journal r where r.scope_id = v."scopeId" and r.conversation = $5::bigint
        and r.kind in (${WITH_TURNS.map(numberOf)}) order by r.n desc limit ${CONVERSATION_PAGE}) j`,
};

/** See `JournalDatabase.load`. Rejects with the store's faults, and for what is not what was written. */
export async function readScope(
  reader: ServerReader,
  scope: Scope,
  bucket: number,
  conversation: number | null,
): Promise<JournalScope> {
  const rows = await reader.read<(StateRow | RecordRow) & object>(LOAD, [...scopeKey(scope), bucket, conversation]);
  let state: StateRow | undefined;
  const behind: JournalRecord[] = [];
  const said: JournalRecord[] = [];
  for (const row of rows) {
    if (row.part === "state") state = row;
    else (row.part === "behind" ? behind : said).push(recordOf(row));
  }
  if (state === undefined) throw new Error("the server answered without a state");
  const { stateOf: scopeId, commits, newestSum: sum, users, memories, forgotten, newestAt } = state;
  return {
    version: scopeId === null ? null : { scopeId, commits, sum },
    snapshot: readSnapshot(state),
    behind: behind.sort((a, b) => a.n - b.n).map(({ n, kind, changes }) => ({ n, kind, changes })),
    deletions: { users, memories },
    forgotten,
    newestAt,
    conversation: said.sort((a, b) => b.n - a.n),
  };
}

function recordOf(row: RecordRow): JournalRecord {
  const { seq, scopeId, n, kind, turn, turns, conversation, requestId, leaf, at, sum, changes, said } = row;
  return readRecord({ seq, scopeId, n, kind, turn, turns, conversation, requestId, leaf, at, sum, changes, said });
}

/** Throws for a snapshot that is not what was written. */
function readSnapshot({ stateOf: scopeId, snapshotAt: n, snapshotSum, snapshot: data }: StateRow): Snapshot | null {
  if (scopeId === null || n === null) return null;
  if (sumOfSnapshot(scopeId, { n, data }) !== snapshotSum)
    throw damagedRecord({ scopeId, n }, "its snapshot is damaged");
  return { n, data };
}
