import type { AgentId, Scope, UserId } from "../../core/index.js";
import { damagedRecord, sumOfRecord } from "../journal/damaged-record.js";
import {
  type JournalRecord,
  RECORD_KINDS,
  type RecordKey,
  type RecordKind,
  type ScopeRow,
} from "../journal/journal-database.js";
import { SCHEMA } from "./schema.js";

/** A row of `journal`, without its bodies. */
export interface StoredKeyRow extends Omit<RecordKey, "kind"> {
  readonly kind: number;
}

/** A row of `journal`. */
export interface StoredRecordRow extends StoredKeyRow {
  readonly sum: number;
  readonly changes: string | null;
  readonly said: string | null;
}

/** A row of `scopes`. */
export interface NamedScopeRow {
  readonly scopeId: number;
  readonly tenant: string;
  readonly userId: string;
  readonly agentId: string;
  readonly createdAt: number;
}

export const KEY_COLUMNS = `j.seq, j.scope_id as "scopeId", j.n, j.kind, j.turn, j.turns, j.conversation,
  j.request_id as "requestId", j.leaf, j.at`;
export const ROW_COLUMNS = `${KEY_COLUMNS}, j.sum, j.changes, j.said`;
export const SCOPE_COLUMNS = `s.scope_id as "scopeId", s.tenant, s.user_id as "userId", s.agent_id as "agentId",
  s.created_at as "createdAt"`;

/** A scope's newest record as a table of one row, or none: its number and checksum are the scope's version. */
export function newestRecord(scopeId: string): string {
  return `lateral (select n, sum from ${SCHEMA}.journal where scope_id = ${scopeId} order by n desc limit 1)`;
}

const NUMBERS = new Map<RecordKind, number>(RECORD_KINDS.map((kind, number) => [kind, number]));

/** A kind's number in rows. */
export function numberOf(kind: RecordKind): number {
  return NUMBERS.get(kind) as number;
}

/** Throws for a number that no kind has. */
export function readKey(row: StoredKeyRow): RecordKey {
  const kind = RECORD_KINDS[row.kind];
  if (kind === undefined) throw damagedRecord(row, `no record is of kind ${row.kind}`);
  return { ...row, kind };
}

/** Throws for a row that is not what was written. */
export function readRecord({ sum, changes, said, ...key }: StoredRecordRow): JournalRecord {
  const record: JournalRecord = { ...readKey(key), changes, said };
  if (sumOfRecord(record, record) !== sum) throw damagedRecord(key, "its checksum is another's");
  return record;
}

/** Empty in the table: no agent. */
export function agentColumn({ agentId }: Pick<Scope, "agentId">): string {
  return agentId ?? "";
}

/** The values that find a scope by its name. */
export function scopeKey(scope: Scope): readonly [tenant: string, userId: string, agentId: string] {
  return [scope.tenant, scope.userId, agentColumn(scope)];
}

export function readScopeRow({ scopeId, createdAt, tenant, userId, agentId }: NamedScopeRow): ScopeRow {
  const scope = { tenant, userId: userId as UserId, agentId: agentId === "" ? null : (agentId as AgentId) };
  return { scopeId, scope, createdAt };
}
