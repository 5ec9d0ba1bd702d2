import { crc32 } from "node:zlib";
import type { AgentId, MemoryId, Scope, UserId } from "../../core/index.js";
import { StoreUnavailableError } from "../api/store.js";
import { named } from "../database/sql.js";
import {
  type JournalRecord,
  type NewRecord,
  RECORD_KINDS,
  type RecordKey,
  type RecordKind,
  type ScopeRow,
  type Snapshot,
} from "./journal-database.js";

/*
 * Rows of the journal's tables, as both databases give them.
 */

/** A row of `journal`, without its bodies. */
export interface KeyRow extends Omit<RecordKey, "kind"> {
  readonly kind: number;
}

/** A row of `journal`. */
export interface RecordRow extends KeyRow {
  readonly sum: number;
  readonly changes: string | null;
  readonly said: string | null;
}

/** A row of `scopes`. */
export interface NamedScopeRow {
  readonly scopeId: number;
  readonly tenant: string;
  readonly userId: string;
  /** Empty: no agent. */
  readonly agentId: string;
  readonly createdAt: number;
}

/** Columns of `journal j` and `scopes s`. */
export const KEY_COLUMNS = `j.seq, j.scope_id as "scopeId", j.n, j.kind, j.turn, j.turns, j.conversation,
  j.request_id as "requestId", j.leaf, j.at`;
export const RECORD_COLUMNS = `${KEY_COLUMNS}, j.sum, j.changes, j.said`;
export const SCOPE_COLUMNS = `s.scope_id as "scopeId", s.tenant, s.user_id as "userId", s.agent_id as "agentId",
  s.created_at as "createdAt"`;

/** In place of a memory's id in `source_deletions`: everything of the user. */
export const EVERYTHING = "";

/** How often a tenant's oldest responses are removed: once in so many uses. */
export const USES_BETWEEN_REMOVALS = 64;

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
export function readRecord({ sum, changes, said, ...key }: RecordRow): JournalRecord {
  const record: JournalRecord = { ...readKey(key), changes, said };
  if (sumOfRecord(record, record) !== sum) throw damagedRecord(key, "its checksum is another's");
  return record;
}

/** The values that find a scope by its name. */
export function scopeKey({
  tenant,
  userId,
  agentId,
}: Scope): readonly [tenant: string, userId: string, agentId: string] {
  return [tenant, userId, agentId ?? ""];
}

export function readScopeRow({ scopeId, createdAt, tenant, userId, agentId }: NamedScopeRow): ScopeRow {
  const scope = { tenant, userId: userId as UserId, agentId: agentId === "" ? null : (agentId as AgentId) };
  return { scopeId, scope, createdAt };
}

/** CRC-32 of a record, but for its `seq`. The lengths stand in it so that no body's end can be taken for the next one's beginning. */
export function sumOfRecord(record: NewRecord, { scopeId, n }: Pick<JournalRecord, "scopeId" | "n">): number {
  const { kind, at, turn, turns, conversation, requestId, leaf, changes, said } = record;
  const lengths = [changes?.length ?? null, said?.length ?? null];
  const key = crc32(JSON.stringify([scopeId, n, kind, at, turn, turns, conversation, requestId, leaf, ...lengths]));
  return crc32(said ?? "", crc32(changes ?? "", key));
}

/** CRC-32 of a snapshot. */
export function sumOfSnapshot(scopeId: number, { n, data }: Snapshot): number {
  return crc32(data, crc32(JSON.stringify([scopeId, n])));
}

/** The error for a record, or a snapshot, that is not what was written. Its message quotes nothing stored. */
export function damagedRecord(
  { scopeId, n }: Pick<JournalRecord, "scopeId" | "n">,
  what: string,
): StoreUnavailableError {
  return new StoreUnavailableError("damaged", { cause: new Error(`record ${n} of scope ${scopeId}: ${what}`) });
}

/** Of an engine (`$1`), whose times are numbered from 1. */
export const LAST_TIME =
  "coalesce((select number from first_token_times where engine = $1 order by number desc limit 1), 0)";

/** Whether a composed request (`$2`) of a scope (`$1`) has a record. */
export const HAS_RECORD = `exists (select 1 from journal j
  where j.request_id = $2 and j.scope_id = $1 and j.kind = ${numberOf("composed")})`;

/** Statements that write, in both databases. */
export const WRITES = named("write", {
  snapshot: `insert into snapshots (scope_id, n, sum, data) values ($1, $2, $3, $4)
    on conflict (scope_id) do update set n = excluded.n, sum = excluded.sum, data = excluded.data`,
  /** What is not named stays: when it was written, and which of the scope's records it is. */
  rewrite: `update journal set kind = $2, turn = $3, turns = $4, conversation = $5, request_id = $6, leaf = $7, changes = $8,
    said = $9, sum = $10 where seq = $1`,
  forget: "insert into forgotten_memories (tenant, user_id, memory_id) values ($1, $2, $3) on conflict do nothing",
  removeForgotten: "delete from forgotten_memories where tenant = $1 and user_id = $2",
  removeResponses: "delete from responses where scope_id = $1",
  /** Those of a request of which no record is left. */
  removeResponsesOf: `delete from responses where scope_id = $1 and request_id = $2 and not ${HAS_RECORD}`,
  countDeletion: `insert into deletions as d (bucket, users, memories) values ($1, $2, $3)
    on conflict (bucket) do update set users = d.users + excluded.users, memories = d.memories + excluded.memories`,
  owe: "insert into source_deletions (tenant, user_id, memory_id) values ($1, $2, $3) on conflict do nothing",
  confirm: "delete from source_deletions where tenant = $1 and user_id = $2 and memory_id = $3",
  keepTime: `insert into first_token_times (engine, number, uncached_tokens, cached_tokens, ms)
    select $1, ${LAST_TIME} + 1, $2, $3, $4`,
  dropTimes: `delete from first_token_times where engine = $1 and number <= ${LAST_TIME} - $2`,
});

/** The values of {@link WRITES.rewrite}. */
export function rewriteValues(record: JournalRecord): readonly unknown[] {
  const { seq, kind, turn, turns, conversation, requestId, leaf, changes, said } = record;
  const sum = sumOfRecord(record, record);
  return [seq, numberOf(kind), turn, turns, conversation, requestId, leaf, changes, said, sum];
}

/** The values of {@link WRITES.countDeletion} of a user's bucket. */
export function countValues(bucket: number, memoryId: MemoryId | null): readonly unknown[] {
  return [bucket, memoryId === null ? 1 : 0, memoryId === null ? 0 : 1];
}

/**
 * A body of a record, or a snapshot, is not what this store writes. The message quotes nothing of it; whoever reads adds the scope and the
 * record.
 */
export class DamagedRecordError extends Error {
  override readonly name = "DamagedRecordError";
}

/** The format of snapshots, changes and what records say; the first element of each. A new one is another number, and this one stays readable. */
export const FORMAT = 1;

/**
 * Unpacks a body. Its checksum was compared when it was read, so its shape is what this store wrote: only its format is compared. Parsed
 * values are kept and not copied: messages and plans keep the order of their fields, in which they may be sent again.
 *
 * @param what names the body in errors
 */
export function unpackedBody<Packed extends readonly [typeof FORMAT, ...unknown[]], T>(
  what: string,
  text: string,
  unpack: (packed: Packed) => T,
): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the text.
    throw new DamagedRecordError(`${what}: not valid JSON`);
  }
  if (!Array.isArray(value) || value[0] !== FORMAT) throw new DamagedRecordError(`${what}: not of format ${FORMAT}`);
  try {
    return unpack(value as unknown as Packed);
  } catch {
    throw new DamagedRecordError(`${what}: not as it is written`);
  }
}
