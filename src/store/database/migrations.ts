import { fileURLToPath } from "node:url";
import type Database from "better-sqlite3";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { migrate } from "drizzle-orm/better-sqlite3/migrator";
import { readMigrationFiles } from "drizzle-orm/migrator";
import type * as schema from "./schema.js";
import { type SchemaProgress, schemaProgress } from "./schema-progress.js";
import { faultOf } from "./sqlite-faults.js";

// Equally deep in `src` and `dist`.
const MIGRATIONS = fileURLToPath(new URL("../../../migrations", import.meta.url));

/** Processes that start together may all try to migrate: the later ones find it done when they retry. */
const MIGRATION_ATTEMPTS = 3;

/** Brings a file's schema up to date, all steps in one transaction. Throws as {@link schemaOf} does. */
export function migrateToLatest(sqlite: Database.Database, orm: BetterSQLite3Database<typeof schema>): void {
  for (let attempt = 1; ; attempt++) {
    try {
      migrate(orm, { migrationsFolder: MIGRATIONS });
      return;
    } catch (error) {
      if (sqlite.inTransaction) sqlite.exec("rollback");
      if (attempt === MIGRATION_ATTEMPTS || faultOf(error) !== null) throw error;
    }
  }
}

/** Throws where the file is another program's, a newer version's, or has a schema that no migration leads on from. */
export function schemaOf(sqlite: Database.Database): SchemaProgress {
  const tables = sqlite.prepare("select name from sqlite_master where type = 'table'").pluck().all();
  const known = readMigrationFiles({ migrationsFolder: MIGRATIONS }).map(({ folderMillis }) => folderMillis);
  if (!tables.includes("__drizzle_migrations")) {
    if (tables.length > 0) throw new Error("it is the database of another program");
    return { applied: 0, known: known.length };
  }
  const times = sqlite.prepare<[], number>("select created_at from __drizzle_migrations order by created_at");
  return schemaProgress(times.pluck().all(), known, "an empty data directory");
}
