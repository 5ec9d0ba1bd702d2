import type Database from "better-sqlite3";
import type { Statement } from "../database/statements.js";
import type { ScopeRowsFound } from "../journal/journal-database.js";
import { type NamedScope, readScopeRow } from "./journal-statements.js";

/** Rows of known memories per page: some milliseconds. */
const MEMORIES_AT_ONCE = 20_000;
/** Records per page. */
const RECORDS_AT_ONCE = 500;

/** See `JournalDatabase.withMemory`. Without an index, because every compose would pay for one and this is rare. `after` is a record's `seq`. */
export function readWithMemory(
  sqlite: Database.Database,
  scopeById: Statement<number, NamedScope>,
  tenant: string,
  hash: number,
  after: number,
): ScopeRowsFound {
  const rows = sqlite
    .prepare<[number], { readonly seq: number; readonly scopeId: number; readonly hashes: Buffer }>(
      `select seq, scope_id as scopeId, hashes from known_memories where seq > ? order by seq limit ${MEMORIES_AT_ONCE}`,
    )
    .all(after);
  const found = new Set<number>();
  for (const { scopeId, hashes } of rows) if (hashesIn(hashes).includes(hash >>> 0)) found.add(scopeId);
  const scopes = namesOf(scopeById, found).filter(({ scope }) => scope.tenant === tenant);
  return { scopes, next: rows.length < MEMORIES_AT_ONCE ? null : (rows.at(-1)?.seq ?? null) };
}

/** See `JournalDatabase.writtenBefore`. Records are in the order of time, so reading ends at the first younger one. `after` is a `seq`. */
export function readWrittenBefore(
  sqlite: Database.Database,
  scopeById: Statement<number, NamedScope>,
  before: number,
  after: number,
): ScopeRowsFound {
  const rows = sqlite
    .prepare<[number], { readonly seq: number; readonly scopeId: number; readonly at: number; readonly turns: number }>(
      `select seq, scope_id as scopeId, at, turns from journal where seq > ? order by seq limit ${RECORDS_AT_ONCE}`,
    )
    .all(after);
  const withTurns = rows.filter(({ turns }) => turns > 0);
  const young = withTurns.findIndex(({ at }) => at >= before);
  const found = new Set((young < 0 ? withTurns : withTurns.slice(0, young)).map(({ scopeId }) => scopeId));
  const isEnd = young >= 0 || rows.length < RECORDS_AT_ONCE;
  return { scopes: namesOf(scopeById, found), next: isEnd ? null : (rows.at(-1)?.seq ?? null) };
}

/** The hashes of one row. */
export function hashesIn(bytes: Buffer): number[] {
  const hashes: number[] = [];
  for (let at = 0; at + 4 <= bytes.length; at += 4) hashes.push(bytes.readUInt32BE(at));
  return hashes;
}

function namesOf(scopeById: Statement<number, NamedScope>, ids: Iterable<number>) {
  return [...ids].flatMap((id) => {
    const row = scopeById.get(id);
    return row === undefined ? [] : [readScopeRow(row)];
  });
}
