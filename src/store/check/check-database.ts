/*
 * check/: whether a database file is whole, for `memstem check`, backups and tests.
 * In: a file, opened to read; a service may write to it meanwhile.
 * Out: findings, a line each, that name users and never text (`DatabaseCheck`).
 * Three levels: SQLite's structure (`check-structure.ts`), what one scope says (`check-journal.ts`), every scope (this file).
 */

import { eq } from "drizzle-orm";
import type { Scope } from "../../core/index.js";
import { openToRead } from "../database/open-database.js";
import { scopes as scopeRows } from "../database/schema.js";
import type { SchemaProgress } from "../database/schema-progress.js";
import { readScope } from "../database/scope-key.js";
import { JournalCheck } from "./check-journal.js";
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
      const journal = new JournalCheck(database);
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
        collect(findings, nameOfScope(scope), () => {
          const found = sqlite.transaction(() => journal.check({ ...row, scope }))();
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

/** A scope in findings. */
export function nameOfScope({ tenant, userId, agentId }: Scope): string {
  return `user ${[tenant, userId, ...(agentId === null ? [] : [agentId])].map((name) => JSON.stringify(name)).join(" ")}`;
}
