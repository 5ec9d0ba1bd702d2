import type Database from "better-sqlite3";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { AgentId, Scope, UserId } from "../../core/index.js";

/*
 * Hot SQL is written by hand: drizzle's work per row costs as much as SQLite's. One idiom: a statement of better-sqlite3, prepared once,
 * typed by the schema. Parameters and result columns have the names of the schema's fields; flags are 0 and 1. Cold SQL uses drizzle.
 */

/** A boolean in SQLite. */
type Flag = 0 | 1;

/** A table's row as SQLite takes and gives it: typed by the schema, with flags for booleans. */
export type SqliteRow<T extends SQLiteTable> = {
  readonly [Field in keyof T["$inferSelect"]]: T["$inferSelect"][Field] extends boolean
    ? Flag
    : T["$inferSelect"][Field];
};

/** A prepared statement with values by name. A result is a row, or the one value of a row. */
export interface Statement<Values, Result = never> {
  run(values: Values): Database.RunResult;
  get(values: Values): Result | undefined;
  all(values: Values): Result[];
  iterate(values: Values): Iterable<Result>;
}

/** Prepares a statement whose result is a row. */
export function prepare<Values, Row = never>(sqlite: Database.Database, sql: string): Statement<Values, Row> {
  return sqlite.prepare<[Values], Row>(sql);
}

/** Prepares a statement whose result is the one value of a row. */
export function prepareValue<Values, Value>(sqlite: Database.Database, sql: string): Statement<Values, Value> {
  return sqlite.prepare<[Values], Value>(sql).pluck();
}

/** What names a scope in its table. */
export type ScopeKey = {
  readonly tenant: string;
  readonly userId: string;
  /** Empty: no agent. */
  readonly agentId: string;
};

export function keyOf(scope: Scope): ScopeKey {
  return { tenant: scope.tenant, userId: scope.userId, agentId: scope.agentId ?? "" };
}

export function readScope(row: ScopeKey): Scope {
  return {
    tenant: row.tenant,
    userId: row.userId as UserId,
    agentId: row.agentId === "" ? null : (row.agentId as AgentId),
  };
}
