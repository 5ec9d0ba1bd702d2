import Database from "better-sqlite3";
import { StoreUnavailableError } from "../api/store.js";

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
