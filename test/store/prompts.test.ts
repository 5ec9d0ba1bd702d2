import { readFileSync } from "node:fs";
import Sqlite from "better-sqlite3";
import type { Database, SqlValue } from "../../src/store/database.js";
import { describePrompts } from "./prompts.suite.js";

const TABLES = readFileSync(new URL("../../migrations/0000_first.sql", import.meta.url), "utf8");

/** A database in memory with the tables of SQLite. */
async function inMemory(): Promise<Pick<Database, "read" | "write" | "close">> {
  const sqlite = new Sqlite(":memory:");
  sqlite.exec(TABLES);
  const byNumber = (values: readonly SqlValue[]) => Object.fromEntries(values.map((value, at) => [at + 1, value]));
  return {
    read: async <R extends object>(text: string, values: readonly SqlValue[]) =>
      sqlite.prepare(text).all(byNumber(values)) as R[],
    write: async (statements) =>
      sqlite.transaction(() => {
        for (const { text, values } of statements) sqlite.prepare(text).run(byNumber(values));
      })(),
    close: async () => void sqlite.close(),
  };
}

describePrompts("prompts in SQLite", inMemory);
