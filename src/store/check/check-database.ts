/*
 * check/: whether a database file is whole, for `memstem check`, backups and tests.
 * In: a file, opened to read; a service may write to it meanwhile.
 * Out: findings, a line each, that name users and never text (`DatabaseCheck`).
 * Three levels: SQLite's structure (`checkStructure`), what one scope says, every scope (this file).
 */

import Database from "better-sqlite3";
import { eq } from "drizzle-orm";
import type { Scope } from "../../core/index.js";
import { StoreUnavailableError } from "../api/store.js";
import type { SchemaProgress } from "../database/database-open-error.js";
import { type DatabaseConnection, openDatabase, openToRead } from "../database/open-database.js";
import { scopes as scopeRows } from "../database/schema.js";
import { readScope } from "../database/statements.js";
import type { ScopeRow } from "../journal/journal-database.js";
import { JournalReads } from "../sqlite/journal-reads.js";
import { type CheckedScope, RECORDS_AT_ONCE, ScopeRecords } from "./scope-records.js";

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
export function problemOf(error: unknown): string {
  // The store says that something is damaged, and its cause says what.
  const told = error instanceof StoreUnavailableError && error.cause instanceof Error ? error.cause : error;
  return told instanceof Error ? told.message : String(told);
}

/** Checks scopes of the journal in a file, in the caller's transaction. */
class JournalCheck {
  readonly #reads: JournalReads;

  constructor(private readonly database: DatabaseConnection) {
    this.#reads = new JournalReads(database);
  }

  /** Reads every record of a scope, folds its state, and compares them. Throws where a record or snapshot is damaged. */
  check({ scopeId, scope }: ScopeRow): CheckedScope {
    const reads = this.#reads;
    const records = new ScopeRecords(scopeId, reads.load(scope), this.database.digests);
    for (let after = 0; ; ) {
      const keys = reads.list(scopeId, { after, most: RECORDS_AT_ONCE });
      records.takeRecords(reads.read(keys.map(({ seq }) => seq)), keys.length);
      const last = keys.at(-1);
      if (last === undefined) break;
      after = last.n;
    }
    for (const piece of records.referred) records.takeShared(piece, reads.shared(scopeId, piece));
    const found = records.requestIds.flatMap((ids) => reads.withRequests({ scopeId }, ids));
    return records.finish({ memories: reads.memoriesOf(scopeId), responses: reads.responsesOf(scopeId), found });
  }
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
