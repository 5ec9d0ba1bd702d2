import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseOpenError } from "../store/database/database-open-error.js";
import { type OpenDatabase, openDatabase } from "../store/database/open-database.js";
import type { Settings } from "./settings.js";

/** Opens the database in the data directory, creating it if it is missing. Throws `DatabaseOpenError`. */
export function openDataDir({ dataDir }: Pick<Settings, "dataDir">): OpenDatabase {
  return openDatabase(join(dataDir, "memstem.db"));
}

/**
 * For commands that only read: a misspelt directory must not be created and reported as empty. Returns the settings. Throws `DatabaseOpenError` where the data directory has no database.
 */
export function withDatabase<S extends Pick<Settings, "dataDir">>(settings: S): S {
  const file = join(settings.dataDir, "memstem.db");
  if (!existsSync(file))
    throw new DatabaseOpenError(file, "there is no such file; MEMSTEM_DATA_DIR says which directory");
  return settings;
}
