import type pg from "pg";
import { sumOfRecord, sumOfSnapshot } from "../journal/damaged-record.js";
import type { JournalChange, JournalUnit, NewRecord, RewrittenRecord } from "../journal/journal-database.js";
import { ask } from "./connections.js";
import { numberOf, ROW_COLUMNS, readRecord, type StoredRecordRow } from "./rows.js";
import { SCHEMA, SCOPE_TABLES } from "./schema.js";

/** A unit that is applied: its scope is locked, and at the version that the unit builds on. */
export interface ClaimedUnit {
  readonly unit: JournalUnit;
  readonly scopeId: number;
  /** The number of its newest record, and that one's checksum; 0: none. */
  readonly commits: number;
  readonly sum: number;
  readonly bucket: number;
  /** What the unit appends. */
  readonly records: readonly NumberedRecord[];
}

/** A record that a unit appends, with its number and checksum. */
export interface NumberedRecord {
  readonly record: NewRecord;
  readonly n: number;
  readonly sum: number;
}

/** In place of a memory's id: everything of the user. */
export const EVERYTHING = "";

/** Rows per statement. The statement for each number of rows is prepared once per connection. */
const ROWS_AT_ONCE = 32;

/** How many records a unit appends. */
function appendedBy({ changes }: JournalUnit): number {
  return changes.reduce((sum, change) => sum + (change.kind === "append" ? change.records.length : 0), 0);
}

/** Whether the unit ends its scope. */
export function isEnd({ changes }: JournalUnit): boolean {
  return changes.some(({ kind }) => kind === "end");
}

/** The records that a unit appends after a scope's first `commits`. */
export function numberedRecords({ changes }: JournalUnit, scopeId: number, commits: number): NumberedRecord[] {
  const records = changes.flatMap((change) => (change.kind === "append" ? change.records : []));
  return records.map((record, at) => {
    const n = commits + 1 + at;
    return { record, n, sum: sumOfRecord(record, { scopeId, n }) };
  });
}

/** The checksum of a scope's newest record after a unit. */
export function sumBehind(
  { unit, commits, sum, records }: Pick<ClaimedUnit, "unit" | "commits" | "sum" | "records">,
  rewritten: ReadonlyMap<number, StoredRecordRow>,
): number {
  const last = records.at(-1);
  if (last !== undefined) return last.sum;
  for (const change of unit.changes) {
    const row = change.kind === "rewrite" ? rewritten.get(change.seq) : undefined;
    if (change.kind === "rewrite" && row?.n === commits) return sumOfRecord({ ...readRecord(row), ...change.to }, row);
  }
  return sum;
}

/** Reads what some units rewrite, by `seq`. Rejects where a unit rewrites or removes what its scope does not have. */
export async function readRewritten(
  client: pg.ClientBase,
  units: readonly ClaimedUnit[],
): Promise<ReadonlyMap<number, StoredRecordRow>> {
  const rewritten = new Map<number, StoredRecordRow>();
  for (const { unit, scopeId, commits } of units) {
    const seqs = unit.changes.flatMap((change) => (change.kind === "rewrite" ? [change.seq] : []));
    const removed = unit.changes.flatMap((change) => (change.kind === "remove" ? change.seqs : []));
    if (seqs.length === 0 && removed.length === 0) continue;
    const [rows, gone] = await Promise.all([
      ask<StoredRecordRow>(client, REWRITTEN, [scopeId, seqs]),
      ask<{ n: number }>(client, REMOVED, [scopeId, removed]),
    ]);
    if (rows.length < new Set(seqs).size) throw new Error("a rewritten record is not there");
    if (gone.length < new Set(removed).size) throw new Error("a removed record is not there");
    const isLastGone = appendedBy(unit) === 0 && gone.some(({ n }) => n === commits);
    if (isLastGone && !isEnd(unit)) throw new Error("the last record of a scope stays: its number is the version");
    for (const row of rows) rewritten.set(row.seq, row);
  }
  return rewritten;
}

const REWRITTEN = {
  name: "rewritten",
  text: `select ${ROW_COLUMNS} from ${SCHEMA}.journal j where j.scope_id = $1 and j.seq = any($2::bigint[])`,
};
const REMOVED = {
  name: "removed",
  text: `select j.n from ${SCHEMA}.journal j where j.scope_id = $1 and j.seq = any($2::bigint[])`,
};

/** With the responses of requests that are gone with it. One statement sees the journal as it was before. */
const REMOVE = `with gone as (
    delete from ${SCHEMA}.journal where scope_id = $1 and seq = any($2::bigint[]) returning request_id)
  delete from ${SCHEMA}.responses r where r.scope_id = $1 and r.request_id in (select request_id from gone)
    and not exists (select from ${SCHEMA}.journal j where j.request_id = r.request_id and j.scope_id = $1
      and j.kind = ${numberOf("composed")} and j.seq <> all($2::bigint[]))`;

/** Sends the statements that apply some units, without waiting for one of them. */
export function applyUnits(
  client: pg.ClientBase,
  units: readonly ClaimedUnit[],
  rewritten: ReadonlyMap<number, StoredRecordRow>,
): Promise<unknown>[] {
  return [
    ...insertRows(client, JOURNAL, units.flatMap(journalRows)),
    ...insertRows(
      client,
      MEMORIES,
      units.flatMap(({ unit, scopeId }) => knownMemories(unit).map((hashes) => [scopeId, hashes])),
    ),
    ...units.flatMap((claimed) => applyChanges(client, claimed, rewritten)),
    ...units.flatMap((claimed) => countDeletion(client, claimed)),
  ];
}

interface Columns {
  readonly table: string;
  readonly names: readonly string[];
}

const JOURNAL: Columns = {
  table: "journal",
  names: "scope_id n kind turn turns conversation request_id leaf at sum changes said".split(" "),
};
const MEMORIES: Columns = { table: "known_memories", names: ["scope_id", "hashes"] };

/** Rows of `journal` as their columns are listed. */
function journalRows({ scopeId, records }: ClaimedUnit): unknown[][] {
  return records.map(({ record, n, sum }) => {
    const { kind, turn, turns, conversation, requestId, leaf, at, changes, said } = record;
    return [scopeId, n, numberOf(kind), turn, turns, conversation, requestId, leaf, at, sum, changes, said];
  });
}

/** What a unit adds to `known_memories`: the hashes of each row, as the column's signed numbers. */
export function knownMemories({ changes }: JournalUnit): number[][] {
  return changes.flatMap((change) =>
    change.kind === "memories" && change.hashes.length > 0 ? [change.hashes.map((hash) => hash | 0)] : [],
  );
}

function insertRows(client: pg.ClientBase, { table, names }: Columns, rows: readonly unknown[][]): Promise<unknown>[] {
  const sent: Promise<unknown>[] = [];
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
    const some = rows.slice(from, from + ROWS_AT_ONCE);
    const places = some.map((_, row) => `(${names.map((__, at) => `$${row * names.length + at + 1}`).join(", ")})`);
    const text = `insert into ${SCHEMA}.${table} (${names.join(", ")}) values ${places.join(", ")}`;
    sent.push(ask(client, { name: `${table}_${some.length}`, text }, some.flat()));
  }
  return sent;
}

function applyChanges(
  client: pg.ClientBase,
  claimed: ClaimedUnit,
  rewritten: ReadonlyMap<number, StoredRecordRow>,
): Promise<unknown>[] {
  return claimed.unit.changes.flatMap((change) => applyChange(client, claimed, change, rewritten));
}

function applyChange(
  client: pg.ClientBase,
  { unit, scopeId, commits }: ClaimedUnit,
  change: JournalChange,
  rewritten: ReadonlyMap<number, StoredRecordRow>,
): Promise<unknown>[] {
  const send = (name: string, text: string, values: readonly unknown[]) => [ask(client, { name, text }, values)];
  switch (change.kind) {
    case "append":
    case "memories":
      return [];
    case "snapshot": {
      const snapshot = { n: commits + appendedBy(unit), data: change.data };
      return send(
        "snapshot",
        `insert into ${SCHEMA}.snapshots (scope_id, n, sum, data) values ($1, $2, $3, $4)
         on conflict (scope_id) do update set n = excluded.n, sum = excluded.sum, data = excluded.data`,
        [scopeId, snapshot.n, sumOfSnapshot(scopeId, snapshot), snapshot.data],
      );
    }
    case "keep-shared": {
      const [name, otherwise] = change.replace
        ? ["replace_shared_row", "update set messages = excluded.messages"]
        : ["keep_shared_row", "nothing"];
      const text = `insert into ${SCHEMA}.instructions (scope_id, digest, messages)
         select $1::bigint, * from unnest($2::text[], $3::text[]) on conflict (scope_id, digest) do ${otherwise}`;
      const [digests, messages] = [change.rows.map(({ digest }) => digest), change.rows.map((row) => row.messages)];
      return send(name, text, [scopeId, digests, messages]);
    }
    case "remove-shared":
      return send(
        "remove_shared_rows",
        `delete from ${SCHEMA}.instructions where scope_id = $1 and digest = any($2::text[])`,
        [scopeId, change.digests],
      );
    case "rewrite": {
      const row = rewritten.get(change.seq);
      return row === undefined ? [] : rewriteRecord(client, row, change.to);
    }
    case "remove":
      return send("remove", REMOVE, [scopeId, change.seqs]);
    case "forget":
      return send(
        "forget",
        `insert into ${SCHEMA}.forgotten_memories (tenant, user_id, memory_id) values ($1, $2, $3) on conflict do nothing`,
        [unit.scope.tenant, unit.scope.userId, change.memoryId],
      );
    case "remove-responses":
      return send("remove_responses", `delete from ${SCHEMA}.responses where scope_id = $1`, [scopeId]);
    case "end":
      return deleteScopes(client, [scopeId]);
  }
}

/** Sends the deletion of scopes whose commits are locked out. */
export function deleteScopes(client: pg.ClientBase, scopeIds: readonly number[]): Promise<unknown>[] {
  return [...SCOPE_TABLES, "scopes"].map((table) =>
    ask(client, { name: `end_${table}`, text: `delete from ${SCHEMA}.${table} where scope_id = any($1::bigint[])` }, [
      scopeIds,
    ]),
  );
}

function rewriteRecord(client: pg.ClientBase, row: StoredRecordRow, to: RewrittenRecord): Promise<unknown>[] {
  const record = { ...readRecord(row), ...to };
  const { seq, scopeId, kind, turns, conversation, requestId, leaf, changes, said } = record;
  const values = [
    seq,
    numberOf(kind),
    turns,
    conversation,
    requestId,
    leaf,
    changes,
    said,
    sumOfRecord(record, record),
  ];
  const rewritten = ask(client, REWRITE, values);
  if (row.requestId === null || row.requestId === requestId) return [rewritten];
  return [rewritten, ask(client, REMOVE_RESPONSES_OF, [scopeId, row.requestId])];
}

const REWRITE = {
  name: "rewrite",
  text: `update ${SCHEMA}.journal set kind = $2, turns = $3, conversation = $4, request_id = $5, leaf = $6, changes = $7,
    said = $8, sum = $9 where seq = $1`,
};
const REMOVE_RESPONSES_OF = {
  name: "remove_responses_of",
  text: `delete from ${SCHEMA}.responses where scope_id = $1 and request_id = $2 and not exists
    (select from ${SCHEMA}.journal where request_id = $2 and scope_id = $1 and kind = ${numberOf("composed")})`,
};

/** Its bucket is locked against everybody else. */
function countDeletion(client: pg.ClientBase, { unit, bucket }: ClaimedUnit): Promise<unknown>[] {
  if (unit.deletion === undefined) return [];
  const { memoryId, isInSource } = unit.deletion;
  return sendDeletion(client, bucket, unit.scope, memoryId, isInSource);
}

/** Sends what counts a deletion, and what the memory source owes for it. */
export function sendDeletion(
  client: pg.ClientBase,
  bucket: number,
  { tenant, userId }: { readonly tenant: string; readonly userId: string },
  memoryId: string | null,
  isInSource: boolean,
): Promise<unknown>[] {
  const counts = memoryId === null ? [1, 0] : [0, 1];
  const counted = ask(
    client,
    {
      name: "count_deletion",
      text: `insert into ${SCHEMA}.deletions as d (bucket, users, memories) values ($1, $2, $3)
        on conflict (bucket) do update set users = d.users + excluded.users, memories = d.memories + excluded.memories`,
    },
    [bucket, ...counts],
  );
  if (!isInSource) return [counted];
  const owed = ask(
    client,
    {
      name: "owe_deletion",
      text: `insert into ${SCHEMA}.source_deletions (tenant, user_id, memory_id) values ($1, $2, $3) on conflict do nothing`,
    },
    [tenant, userId, memoryId ?? EVERYTHING],
  );
  return [counted, owed];
}
