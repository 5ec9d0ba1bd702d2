import { existsSync, readFileSync } from "node:fs";
import Database from "better-sqlite3";

/** Every row of every table in a database file, by a second connection that can only read. */
export function storedRows(file: string): ReadonlyMap<string, readonly Readonly<Record<string, unknown>>[]> {
  const database = new Database(file, { readonly: true, fileMustExist: true });
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
    return new Map(
      tables.map((table) => [table, database.prepare(`SELECT * FROM "${table}"`).all() as Record<string, unknown>[]]),
    );
  } finally {
    database.close();
  }
}

/** How many rows each table has. */
export function rowCounts(file: string): Record<string, number> {
  return Object.fromEntries([...storedRows(file)].map(([table, rows]) => [table, rows.length]));
}

/** The columns in which a text stands, as `table.column`. */
export function columnsHolding(file: string, text: string): string[] {
  const inJson = JSON.stringify(text).slice(1, -1);
  const found = new Set<string>();
  for (const [table, rows] of storedRows(file)) {
    for (const [column, value] of rows.flatMap((row) => Object.entries(row))) {
      const cell = String(value);
      if (cell.includes(text) || cell.includes(inJson)) found.add(`${table}.${column}`);
    }
  }
  return [...found];
}

/** Which of a database's files hold a text anywhere: in rows, in free pages or in the log. */
export function filesHolding(file: string, text: string): string[] {
  return [file, `${file}-wal`, `${file}-shm`, `${file}-journal`].filter(
    (path) => existsSync(path) && readFileSync(path).includes(text),
  );
}
