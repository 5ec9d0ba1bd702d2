/*
 * check/: whether a database file is whole, for `memstem check`, backups and tests.
 * In: a file, opened to read; a service may write to it meanwhile.
 * Out: findings, a line each, that name users and never text (`DatabaseCheck`).
 * Three levels: SQLite's structure (`check-structure.ts`), rows of one scope (`check-scope.ts`), every scope loaded (this file).
 */

import { eq } from "drizzle-orm";
import { type Scope, type ScopeBounds, ScopeState } from "../../core/index.js";
import type { SchemaProgress } from "../database/migrations.js";
import { type OpenDatabase, openToRead } from "../database/open-database.js";
import { scopes as scopeRows } from "../database/schema.js";
import { readScope } from "../records/stored-scope.js";
import { SqliteReads } from "../sqlite/sqlite-reads.js";
import { checkRequests, checkRows, checkTurns } from "./check-scope.js";
import { collect, MOST_FINDINGS, structureProblems } from "./check-structure.js";

/** Result of a check. Names users, never text. */
export interface DatabaseCheck {
  readonly schema: SchemaProgress;
  /** Scopes that were checked; 0 where the schema is older than this version's: a service has to migrate it first. */
  readonly scopes: number;
  readonly requests: number;
  /** A line each; empty: none. */
  readonly findings: readonly string[];
}

/** Bounds are enforced by the service, not by a check. */
const NO_BOUNDS: ScopeBounds = { maxIndexNodes: Number.POSITIVE_INFINITY, maxLoadedConversations: 1 };

/**
 * Checks a database file: SQLite's structure, references between rows, and the invariants of every scope. Read-only, one transaction per
 * scope, so a service may run meanwhile. Throws `DatabaseOpenError` where the file is not a memstem database.
 */
export function checkDatabase(file: string): DatabaseCheck {
  const database = openToRead(file);
  const { sqlite, orm, schema } = database;
  let scopes = 0;
  let requests = 0;
  try {
    const findings = structureProblems(sqlite);
    if (schema.applied < schema.known) return { schema, scopes, requests, findings };
    collect(findings, "scopes", () => {
      const store = new SqliteReads(database);
      for (const { scopeId } of orm
        .select({ scopeId: scopeRows.scopeId })
        .from(scopeRows)
        .orderBy(scopeRows.scopeId)
        .all()) {
        if (findings.length >= MOST_FINDINGS) break;
        const row = orm.select().from(scopeRows).where(eq(scopeRows.scopeId, scopeId)).get();
        // Deleted since the list was made.
        if (row === undefined) continue;
        const scope = readScope(row);
        // A damaged page ends the transaction with its error.
        collect(findings, nameOf(scope), () => {
          const found = sqlite.transaction(() => checkScope(database, store, scope, scopeId))();
          scopes++;
          requests += found.requests;
          return found.problems;
        });
      }
      return [];
    });
    return { schema, scopes, requests, findings };
  } finally {
    sqlite.close();
  }
}

function checkScope(
  database: OpenDatabase,
  store: SqliteReads,
  scope: Scope,
  scopeId: number,
): { readonly requests: number; readonly problems: readonly string[] } {
  const { scope: stored } = store.loadScope(scope);
  const state = new ScopeState(stored, () => 0, NO_BOUNDS);
  state.index.check();
  state.published.check();
  const turns = checkTurns(database, scopeId, stored.counters, state.register);
  const asked = checkRequests(database.orm, scopeId, scope, store, stored.nodes);
  return { requests: asked.count, problems: [...checkRows(stored), ...turns, ...asked.problems] };
}

function nameOf({ tenant, userId, agentId }: Scope): string {
  return `user ${[tenant, userId, ...(agentId === null ? [] : [agentId])].map((name) => JSON.stringify(name)).join(" ")}`;
}
