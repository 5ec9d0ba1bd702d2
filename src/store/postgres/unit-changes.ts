import type pg from "pg";
import type { Scope } from "../../core/index.js";
import { named } from "../database/sql.js";
import type { CountedDeletion, JournalChange, JournalUnit, NewRecord } from "../journal/journal-database.js";
import {
  countValues,
  EVERYTHING,
  numberOf,
  RECORD_COLUMNS,
  type RecordRow,
  readRecord,
  rewriteValues,
  sumOfRecord,
  sumOfSnapshot,
  WRITES,
} from "../journal/journal-sql.js";
import { ask } from "./connections.js";

/** What belongs to a scope by its number, and is deleted with it. There are no foreign keys: each check would write to the scope's row. */
const SCOPE_TABLES = ["journal", "snapshots", "instructions", "known_memories", "responses"] as const;

const STATEMENTS = named("unit", {
  rewritten: `select ${RECORD_COLUMNS} from journal j where j.scope_id = $1 and j.seq = any($2::bigint[])`,
  removed: "select j.n from journal j where j.scope_id = $1 and j.seq = any($2::bigint[])",
  /** With the responses of requests that are gone with it. One statement sees the journal as it was before. */
  remove: `with gone as (
      delete from journal where scope_id = $1 and seq = any($2::bigint[]) returning request_id)
    delete from responses r where r.scope_id = $1 and r.request_id in (select request_id from gone)
      and not exists (select from journal j where j.request_id = r.request_id and j.scope_id = $1
        and j.kind = ${numberOf("composed")} and j.seq <> all($2::bigint[]))`,
  keepShared: `insert into instructions (scope_id, digest, messages)
    select $1::bigint, * from unnest($2::text[], $3::text[]) on conflict (scope_id, digest) do nothing`,
  removeShared: "delete from instructions where scope_id = $1 and digest = any($2::text[])",
  keepResponses: "delete from responses where scope_id = $1 and id <> all($2::text[])",
});

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
interface NumberedRecord {
  readonly record: NewRecord;
  readonly n: number;
  readonly sum: number;
}

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
  rewritten: ReadonlyMap<number, RecordRow>,
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
): Promise<ReadonlyMap<number, RecordRow>> {
  const rewritten = new Map<number, RecordRow>();
  for (const { unit, scopeId, commits } of units) {
    const seqs = unit.changes.flatMap((change) => (change.kind === "rewrite" ? [change.seq] : []));
    const removed = unit.changes.flatMap((change) => (change.kind === "remove" ? change.seqs : []));
    if (seqs.length === 0 && removed.length === 0) continue;
    const [rows, gone] = await Promise.all([
      ask<RecordRow>(client, STATEMENTS.rewritten, [scopeId, seqs]),
      ask<{ n: number }>(client, STATEMENTS.removed, [scopeId, removed]),
    ]);
    if (rows.length < new Set(seqs).size) throw new Error("a rewritten record is not there");
    if (gone.length < new Set(removed).size) throw new Error("a removed record is not there");
    const isLastGone = appendedBy(unit) === 0 && gone.some(({ n }) => n === commits);
    if (isLastGone && !isEnd(unit)) throw new Error("the last record of a scope stays: its number is the version");
    for (const row of rows) rewritten.set(row.seq, row);
  }
  return rewritten;
}

/** Sends the statements that apply some units, without waiting for one of them. */
export function applyUnits(
  client: pg.ClientBase,
  units: readonly ClaimedUnit[],
  rewritten: ReadonlyMap<number, RecordRow>,
): Promise<unknown>[] {
  return [
    ...insertRows(client, JOURNAL, units.flatMap(journalRows)),
    ...insertRows(
      client,
      MEMORIES,
      units.flatMap(({ unit, scopeId }) => knownMemories(unit).map((hashes) => [scopeId, hashes])),
    ),
    ...units.flatMap((claimed) =>
      claimed.unit.changes.flatMap((change) => applyChange(client, claimed, change, rewritten)),
    ),
    ...units.flatMap(({ unit, bucket }) =>
      unit.deletion === undefined ? [] : sendDeletion(client, bucket, unit.scope, unit.deletion),
    ),
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
function knownMemories({ changes }: JournalUnit): number[][] {
  return changes.flatMap((change) =>
    change.kind === "memories" && change.hashes.length > 0 ? [change.hashes.map((hash) => hash | 0)] : [],
  );
}

function insertRows(client: pg.ClientBase, { table, names }: Columns, rows: readonly unknown[][]): Promise<unknown>[] {
  const sent: Promise<unknown>[] = [];
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
    const some = rows.slice(from, from + ROWS_AT_ONCE);
    const places = some.map((_, row) => `(${names.map((__, at) => `$${row * names.length + at + 1}`).join(", ")})`);
    const text = `insert into ${table} (${names.join(", ")}) values ${places.join(", ")}`;
    sent.push(ask(client, { name: `${table}_${some.length}`, text }, some.flat()));
  }
  return sent;
}

function applyChange(
  client: pg.ClientBase,
  { unit, scopeId, commits }: ClaimedUnit,
  change: JournalChange,
  rewritten: ReadonlyMap<number, RecordRow>,
): Promise<unknown>[] {
  switch (change.kind) {
    case "append":
    case "memories":
      return [];
    case "snapshot": {
      const snapshot = { n: commits + appendedBy(unit), data: change.data };
      const sum = sumOfSnapshot(scopeId, snapshot);
      return [ask(client, WRITES.snapshot, [scopeId, snapshot.n, sum, snapshot.data])];
    }
    case "keep-shared": {
      const [digests, messages] = [change.rows.map(({ digest }) => digest), change.rows.map((row) => row.messages)];
      return [ask(client, STATEMENTS.keepShared, [scopeId, digests, messages])];
    }
    case "remove-shared":
      return [ask(client, STATEMENTS.removeShared, [scopeId, change.digests])];
    case "rewrite": {
      const row = rewritten.get(change.seq);
      if (row === undefined) return [];
      const record = { ...readRecord(row), ...change.to };
      const sent = ask(client, WRITES.rewrite, rewriteValues(record));
      if (row.requestId === null || row.requestId === record.requestId) return [sent];
      return [sent, ask(client, WRITES.removeResponsesOf, [scopeId, row.requestId])];
    }
    case "remove":
      return [ask(client, STATEMENTS.remove, [scopeId, change.seqs])];
    case "forget":
      return [ask(client, WRITES.forget, [unit.scope.tenant, unit.scope.userId, change.memoryId])];
    case "keep-responses":
      return [ask(client, STATEMENTS.keepResponses, [scopeId, change.ids])];
    case "end":
      return deleteScopes(client, [scopeId]);
  }
}

/** Sends the deletion of scopes whose commits are locked out. */
export function deleteScopes(client: pg.ClientBase, scopeIds: readonly number[]): Promise<unknown>[] {
  return [...SCOPE_TABLES, "scopes"].map((table) =>
    ask(client, { name: `end_${table}`, text: `delete from ${table} where scope_id = any($1::bigint[])` }, [scopeIds]),
  );
}

/** Sends what counts a deletion, and what the memory source owes for it. The bucket is locked against everybody else. */
export function sendDeletion(
  client: pg.ClientBase,
  bucket: number,
  { tenant, userId }: Pick<Scope, "tenant" | "userId">,
  { memoryId, isInSource }: CountedDeletion,
): Promise<unknown>[] {
  const counted = ask(client, WRITES.countDeletion, countValues(bucket, memoryId));
  if (!isInSource) return [counted];
  return [counted, ask(client, WRITES.owe, [tenant, userId, memoryId ?? EVERYTHING])];
}
