import type { journal } from "../database/journal-schema.js";
import type { SqliteRow } from "../database/statements.js";
import { type JournalRecord, RECORD_KINDS, type RecordKey, type RecordKind } from "../journal/journal-database.js";
import { damagedRecord, sumOfRecord } from "../journal/record-sum.js";

/** A row of `journal`. */
export type JournalRow = SqliteRow<typeof journal>;
/** A row's columns that it is found by. */
export type KeyRow = Omit<JournalRow, "sum" | "changes" | "said">;

export const KEY_COLUMNS = `journal.seq, journal.scope_id as scopeId, journal.n, journal.kind, journal.turn, journal.turns,
  journal.conversation, journal.request_id as requestId, journal.leaf, journal.at`;
export const ROW_COLUMNS = `${KEY_COLUMNS}, journal.sum, journal.changes, journal.said`;

const NUMBERS = new Map<RecordKind, number>(RECORD_KINDS.map((kind, number) => [kind, number]));

/** A kind's number in rows. */
export function numberOf(kind: RecordKind): number {
  return NUMBERS.get(kind) as number;
}

/** Throws for a number that no kind has. */
export function readKey(row: KeyRow): RecordKey {
  const kind = RECORD_KINDS[row.kind];
  if (kind === undefined) throw damagedRecord(row, `no record is of kind ${row.kind}`);
  return { ...row, kind };
}

/** Throws for a row that is not what was written. */
export function readRecord({ sum, changes, said, ...key }: JournalRow): JournalRecord {
  const record: JournalRecord = { ...readKey(key), changes, said };
  if (sumOfRecord(record, record) !== sum) throw damagedRecord(key, "its checksum is another's");
  return record;
}
