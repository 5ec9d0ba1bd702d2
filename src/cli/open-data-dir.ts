import { existsSync } from "node:fs";
import { join } from "node:path";
import { InvalidRequestError } from "../service/base/errors.js";
import { DatabaseOpenError } from "../store/database/database-open-error.js";
import { type OpenDatabase, openDatabase } from "../store/database/open-database.js";
import type { Settings } from "./settings.js";

type Place = Pick<Settings, "dataDir" | "databaseUrl">;

/** Opens the database in the data directory, creating it if it is missing. Throws as {@link fileDirectory} does, and `DatabaseOpenError`. */
export function openDataDir(settings: Place): OpenDatabase {
  return openDatabase(join(fileDirectory(settings), "memstem.db"));
}

/** The data directory. Throws `InvalidRequestError` where the database is a server's: then a file here is not the one that is meant. */
export function fileDirectory({ dataDir, databaseUrl }: Place): string {
  if (databaseUrl === undefined) return dataDir;
  const message =
    "is for memstem serve, keys, explain, export and check: this command reads the file in MEMSTEM_DATA_DIR";
  throw new InvalidRequestError([{ field: "MEMSTEM_DATABASE_URL", message }]);
}

/**
 * For commands that only read: a misspelt directory must not be created and reported as empty. Returns the settings. Throws `DatabaseOpenError` where the data directory has no database.
 */
export function withDatabase<S extends Place>(settings: S): S {
  // A server's is there, or opening it fails.
  if (settings.databaseUrl !== undefined) return settings;
  const file = join(settings.dataDir, "memstem.db");
  if (!existsSync(file))
    throw new DatabaseOpenError(file, "there is no such file; MEMSTEM_DATA_DIR says which directory");
  return settings;
}
