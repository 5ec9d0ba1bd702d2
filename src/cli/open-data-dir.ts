import { join } from "node:path";
import { type OpenDatabase, openDatabase } from "../store/open-database.js";
import type { Settings } from "./settings.js";

/** The database in the data directory. Throws `DatabaseOpenError`. */
export function openDataDir({ dataDir }: Pick<Settings, "dataDir">): OpenDatabase {
  return openDatabase(join(dataDir, "memstem.db"));
}
