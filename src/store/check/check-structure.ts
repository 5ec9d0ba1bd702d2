import Database from "better-sqlite3";

/** Past these nothing new is learned. */
export const MOST_FINDINGS = 100;

/** What SQLite itself finds wrong with a database, a line each: its pages, its indexes, references to rows that are not there. */
export function structureProblems(sqlite: Database.Database): string[] {
  const problems: string[] = [];
  collect(problems, "integrity", () => {
    const rows = sqlite.pragma(`integrity_check(${MOST_FINDINGS})`) as { readonly integrity_check: string }[];
    return rows.map((row) => row.integrity_check).filter((text) => text !== "ok");
  });
  collect(problems, "references", () => {
    const rows = sqlite.pragma("foreign_key_check") as { readonly table: string; readonly parent: string }[];
    return rows.slice(0, MOST_FINDINGS).map(({ table, parent }) => `a row of ${table} names none of ${parent}`);
  });
  return problems;
}

/** The same for any SQLite file, which another process may be writing to. */
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

/** Adds what `work` finds, or what it fails with, under the name of where that was. */
export function collect(problems: string[], where: string, work: () => Iterable<string>): void {
  try {
    for (const problem of work()) problems.push(`${where}: ${problem}`);
  } catch (error) {
    problems.push(`${where}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
