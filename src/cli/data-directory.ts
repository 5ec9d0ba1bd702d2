import { existsSync } from "node:fs";
import { join } from "node:path";
import { STORE_DATABASES } from "../memory/embedded-store.js";
import { DatabaseOpenError } from "../store/open-error.js";
import { DATABASE_FILE } from "../store/sqlite/open.js";
import type { Settings } from "./setting-list.js";
import { UsageError } from "./settings.js";

/** The embedded Mem0's directory, in it. */
const MEM0 = "mem0";

/** The SQLite databases in a data directory: memprefix's own, the embedded Mem0's. */
export function databasesIn(directory: string): string[] {
  return [DATABASE_FILE, ...STORE_DATABASES.map((name) => `${MEM0}/${name}`)].filter((name) =>
    existsSync(join(directory, name)),
  );
}

type Place = Pick<Settings, "dataDir" | "databaseUrl">;

/** The data directory. Throws `UsageError` where the database is a server's: then a file here is not the one that is meant. */
export function fileDirectory({ dataDir, databaseUrl }: Place): string {
  if (databaseUrl === undefined) return dataDir;
  const message =
    "is for memprefix serve, doctor, keys, explain and export: this command reads the file in MEMPREFIX_DATA_DIR";
  throw new UsageError([{ field: "MEMPREFIX_DATABASE_URL", message }]);
}

/**
 * For commands that only read: a misspelt directory must not be created and reported as empty. Returns the settings. Throws `DatabaseOpenError` where the data directory has no database.
 */
export function withDatabase<S extends Place>(settings: S): S {
  // A server's is there, or opening it fails.
  if (settings.databaseUrl !== undefined) return settings;
  const file = join(settings.dataDir, DATABASE_FILE);
  if (!existsSync(file))
    throw new DatabaseOpenError(file, "there is no such file; MEMPREFIX_DATA_DIR says which directory");
  return settings;
}
