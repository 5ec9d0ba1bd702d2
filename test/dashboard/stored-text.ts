import { join } from "node:path";
import Database from "better-sqlite3";
import { DATABASE_FILE } from "../../src/store/sqlite/open.js";

/** Texts that match, in any row of a data directory's database. */
export function storedTexts(dataDir: string, pattern: RegExp): readonly string[] {
  const found = new Set<string>();
  const database = new Database(join(dataDir, DATABASE_FILE), { readonly: true });
  const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
  for (const table of tables) {
    for (const row of database.prepare(`SELECT * FROM "${table}"`).all() as Record<string, unknown>[]) {
      for (const value of Object.values(row)) {
        const text = Buffer.isBuffer(value) ? value.toString("latin1") : String(value);
        const [match] = pattern.exec(text) ?? [];
        if (match !== undefined) found.add(match);
      }
    }
  }
  database.close();
  return [...found].toSorted();
}
