import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { type BetterSQLite3Database, drizzle } from "drizzle-orm/better-sqlite3";
import { migrate } from "drizzle-orm/better-sqlite3/migrator";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { DatabaseOpenError } from "./database-open-error.js";
import * as schema from "./schema.js";

/** An open, migrated database. */
export interface OpenDatabase {
  readonly sqlite: Database.Database;
  readonly orm: BetterSQLite3Database<typeof schema>;
}

// Equally deep in `src` and `dist`.
const MIGRATIONS = fileURLToPath(new URL("../../migrations", import.meta.url));

/**
 * Opens a database file, or `":memory:"`, and brings its schema up to date. WAL with `synchronous = NORMAL`: what was committed
 * survives the death of the process at any point; a power cut may take the last commits, never the file's integrity. Deleted text
 * is overwritten (`secure_delete`). Throws {@link DatabaseOpenError}.
 */
export function openDatabase(file: string): OpenDatabase {
  let sqlite: Database.Database | undefined;
  try {
    if (file !== ":memory:") mkdirSync(dirname(file), { recursive: true });
    sqlite = new Database(file, { timeout: 5_000 });
    sqlite.pragma("journal_mode = WAL");
    sqlite.pragma("synchronous = NORMAL");
    // A checkpoint waits for the disk: let the log grow to 16 MB, so that fewer composes meet one.
    sqlite.pragma("wal_autocheckpoint = 4000");
    sqlite.pragma("foreign_keys = ON");
    sqlite.pragma("secure_delete = ON");
    refuseNewerSchema(sqlite);
    const orm = drizzle(sqlite, { schema });
    migrate(orm, { migrationsFolder: MIGRATIONS });
    return { sqlite, orm };
  } catch (error) {
    sqlite?.close();
    throw new DatabaseOpenError(file, error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function refuseNewerSchema(sqlite: Database.Database): void {
  const table = sqlite.prepare("select 1 from sqlite_master where name = '__drizzle_migrations'").get();
  if (table === undefined) return;
  const last = sqlite.prepare("select max(created_at) from __drizzle_migrations").pluck().get();
  const known = readMigrationFiles({ migrationsFolder: MIGRATIONS }).at(-1)?.folderMillis ?? 0;
  if (Number(last) > known) throw new Error("it was written by a newer version of memstem");
}
