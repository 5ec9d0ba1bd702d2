/*
 * check/: whether a database is whole, for `memprefix check`, backups and tests.
 * In: a file, opened to read, or a server; a service may write to it meanwhile.
 * Out: findings, a line each, that name users and never text (`DatabaseCheck`).
 * Three levels: SQLite's structure (`checkStructure`), what one scope says, every scope (this file).
 */

import Database from "better-sqlite3";
import type { Scope } from "../../core/index.js";
import { messageOf } from "../../core/text/thrown.js";
import { StoreUnavailableError } from "../api/store.js";
import type { SchemaProgress } from "../database/database-open-error.js";
import type { DigestSeal } from "../database/digest-seal.js";
import { openDatabase, openToRead } from "../database/open-database.js";
import type { SqlReader } from "../database/sql.js";
import type { JournalReads } from "../journal/journal-sql.js";
import { SqliteReads } from "../sqlite/sqlite-journal.js";
import { type CheckedReads, checkScope } from "./scope-records.js";

/**
 * Makes the indexes of a database file again from its rows, in one transaction: for a file whose rows are whole, and whose indexes are not.
 * Nobody else can write meanwhile. Throws `DatabaseOpenError`, or SQLite's errors where rows are damaged, too; then nothing is changed.
 */
export function rebuildIndexes(file: string): void {
  const { sqlite } = openDatabase(file);
  try {
    sqlite.exec("reindex");
  } finally {
    sqlite.close();
  }
}

/** Most findings of one check. */
export const MOST_FINDINGS = 100;

/** SQLite's own findings, a line each: pages, indexes, foreign keys. */
export function structureProblems(sqlite: Database.Database): string[] {
  const problems: string[] = [];
  collect(problems, "integrity", () => {
    const rows = sqlite.pragma(`integrity_check(${MOST_FINDINGS})`) as { readonly integrity_check: string }[];
    return rows.map((row) => row.integrity_check).filter((text) => text !== "ok");
  });
  collect(problems, "references", () => {
    const rows = sqlite.pragma("foreign_key_check") as { readonly table: string; readonly parent: string }[];
    return rows
      .slice(0, MOST_FINDINGS)
      .map(({ table, parent }) => `a row of ${table} refers to a missing row of ${parent}`);
  });
  return problems;
}

/** The same for any SQLite file; another process may be writing to it. */
export function checkStructure(file: string): string[] {
  const problems: string[] = [];
  collect(problems, "file", () => {
    const sqlite = new Database(file, { readonly: true, fileMustExist: true, timeout: 5_000 });
    try {
      return structureProblems(sqlite);
    } finally {
      sqlite.close();
    }
  });
  return problems;
}

/** Adds the findings of `work`, or its error, each prefixed with `where`. */
export function collect(problems: string[], where: string, work: () => Iterable<string>): void {
  try {
    for (const problem of work()) problems.push(`${where}: ${problem}`);
  } catch (error) {
    problems.push(`${where}: ${problemOf(error)}`);
  }
}

/** What an error says is wrong. */
function problemOf(error: unknown): string {
  // The store says that something is damaged, and its cause says what.
  return messageOf(error instanceof StoreUnavailableError && error.cause instanceof Error ? error.cause : error);
}

/** A journal that is checked. */
export interface CheckedJournal {
  readonly digests: DigestSeal;
  readonly reads: CheckedReads & Pick<JournalReads, "scopesById">;
  readonly reader: SqlReader;
  /** Runs reads of one state of the database. */
  together<T>(work: () => Promise<T>): Promise<T>;
  /** Throws where an error is none of a scope's. */
  refuse?(error: unknown): void;
}

/** Scopes that are listed together. */
const SCOPES_AT_ONCE = 500;
const SCOPES = {
  text: `select scope_id as "scopeId" from scopes where scope_id > $1 order by scope_id limit ${SCOPES_AT_ONCE}`,
};

/** Checks every scope of a journal; adds to `findings`, up to {@link MOST_FINDINGS}. Gives how many there were, and their requests. */
export async function checkScopes(
  { digests, reads, reader, together, refuse }: CheckedJournal,
  findings: string[],
): Promise<{ readonly scopes: number; readonly requests: number }> {
  let scopes = 0;
  let requests = 0;
  for (let after = 0; findings.length < MOST_FINDINGS; ) {
    const rows = await reader.read<{ scopeId: number }>(SCOPES, [after]);
    for (const { scopeId } of rows) {
      after = scopeId;
      if (findings.length >= MOST_FINDINGS) break;
      let name = `scope ${scopeId}`;
      try {
        await together(async () => {
          const [row] = await reads.scopesById([scopeId]);
          // Deleted since the list was made.
          if (row === undefined) return;
          name = nameOfScope(row.scope);
          const checked = await checkScope(reads, digests, row);
          scopes++;
          requests += checked.requests;
          for (const problem of checked.problems) findings.push(`${name}: ${problem}`);
        });
      } catch (error) {
        refuse?.(error);
        findings.push(`${name}: ${problemOf(error)}`);
      }
    }
    if (rows.length < SCOPES_AT_ONCE) break;
  }
  return { scopes, requests };
}

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
 * scope, so a service may run meanwhile. Rejects with `DatabaseOpenError` where the file is not a memprefix database.
 */
export async function checkDatabase(file: string): Promise<DatabaseCheck> {
  const database = openToRead(file);
  const { sqlite, digests, schema } = database;
  try {
    const findings = structureProblems(sqlite);
    if (schema.applied < schema.known) return { schema, scopes: 0, requests: 0, findings };
    const together = async <T>(work: () => Promise<T>) => {
      sqlite.exec("begin");
      try {
        return await work();
      } finally {
        // A damaged page ends the transaction with its error.
        if (sqlite.inTransaction) sqlite.exec("rollback");
      }
    };
    const reads = new SqliteReads(database);
    const counts = await checkScopes({ digests, reads, reader: reads.reader, together }, findings).catch((error) => {
      findings.push(`scopes: ${problemOf(error)}`);
      return { scopes: 0, requests: 0 };
    });
    return { schema, ...counts, findings };
  } finally {
    sqlite.close();
  }
}

/** A scope in findings. */
function nameOfScope({ tenant, userId, agentId }: Scope): string {
  return `user ${[tenant, userId, ...(agentId === null ? [] : [agentId])].map((name) => JSON.stringify(name)).join(" ")}`;
}
