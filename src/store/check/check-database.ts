/*
 * check/: whether a database file is whole, for `memstem check`, backups and tests.
 * In: a file, opened to read; a service may write to it meanwhile.
 * Out: findings, a line each, that name users and never text (`DatabaseCheck`).
 * Three levels: SQLite's structure (`check-structure.ts`), what one scope says (`check-journal.ts`; `check-tables.ts` where no upgrade has
 * moved it yet), every scope (this file).
 */

import { eq } from "drizzle-orm";
import type { Scope } from "../../core/index.js";
import type { SchemaProgress } from "../database/migrations.js";
import { openToRead } from "../database/open-database.js";
import { scopes as scopeRows } from "../database/schema.js";
import { readScope } from "../database/scope-key.js";
import { hasTables } from "../upgrade/table-scope.js";
import { JournalCheck } from "./check-journal.js";
import { collect, MOST_FINDINGS, structureProblems } from "./check-structure.js";
import { TableCheck } from "./check-tables.js";

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
      const tables = hasTables(sqlite) ? new TableCheck(database) : null;
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
        const isInJournal = row.version === 0;
        // A damaged page ends the transaction with its error.
        collect(findings, nameOfScope(scope), () => {
          const check = () => (isInJournal ? journal.check({ ...row, scope }) : tables?.check(row));
          const found = sqlite.transaction(check)();
          if (found === undefined) return ["the tables that it is in are missing"];
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
