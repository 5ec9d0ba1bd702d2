import { fileURLToPath } from "node:url";
import type Database from "better-sqlite3";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { migrate } from "drizzle-orm/better-sqlite3/migrator";
import { readMigrationFiles } from "drizzle-orm/migrator";
import type * as schema from "./schema.js";
import { faultOf } from "./sqlite-faults.js";

// Equally deep in `src` and `dist`.
const MIGRATIONS = fileURLToPath(new URL("../../../migrations", import.meta.url));

/** Processes that start together may all try to make the schema: the later ones find it made when they retry. */
const ATTEMPTS = 3;

/** Why a database, of a file or of a server, is refused whose schema this version did not make. */
export const OTHER_SCHEMA =
  "another version of memstem made its schema, which this version does not read: open it with that version, or begin with an empty one";

/** Makes the schema of a new file in one transaction; that of another is as it should be, or {@link hasSchema} has refused it. */
export function makeSchema(orm: BetterSQLite3Database<typeof schema>): void {
  const sqlite = (orm as typeof orm & { readonly $client: Database.Database }).$client;
  for (let attempt = 1; ; attempt++) {
    try {
      migrate(orm, { migrationsFolder: MIGRATIONS });
      return;
    } catch (error) {
      if (sqlite.inTransaction) sqlite.exec("rollback");
      if (attempt === ATTEMPTS || faultOf(error) !== null) throw error;
    }
  }
}

/** Whether a file has its tables; one without any is new. Throws where they are another program's, or of another schema. */
export function hasSchema(sqlite: Database.Database): boolean {
  const tables = sqlite.prepare("select name from sqlite_master where type = 'table'").pluck().all();
  if (tables.length === 0) return false;
  if (!tables.includes("__drizzle_migrations")) throw new Error("it is the database of another program");
  const made = sqlite.prepare("select hash from __drizzle_migrations order by created_at").pluck().all();
  const ours = readMigrationFiles({ migrationsFolder: MIGRATIONS }).map(({ hash }) => hash);
  if (made.join() !== ours.join()) throw new Error(OTHER_SCHEMA);
  return true;
}
