import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { messageOf } from "../core/text/thrown.js";
import { STORE_DATABASES } from "../memory/embedded-store.js";
import { DatabaseOpenError } from "../store/open-error.js";
import { DATABASE_FILE } from "../store/sqlite/open.js";
import type { Settings } from "./setting-list.js";

const MEM0 = "mem0";

/** The SQLite databases in a data directory: memprefix's own, and the embedded Mem0's. */
export function databasesIn(directory: string): string[] {
  return [DATABASE_FILE, ...STORE_DATABASES.map((name) => `${MEM0}/${name}`)].filter((name) =>
    existsSync(join(directory, name)),
  );
}

/** The data directory, created if missing. Throws `DatabaseOpenError` where it cannot be created. */
export function fileDirectory({ dataDir }: Pick<Settings, "dataDir">): string {
  try {
    makeDirectory(dataDir);
    return dataDir;
  } catch (error) {
    throw new DatabaseOpenError(dataDir, messageOf(error), { cause: error });
  }
}

/** For commands that only read: throws `DatabaseOpenError` for a directory without a database, so that a misspelt one is not created. */
export function withDatabase(settings: Settings): Settings {
  // A server's database exists, or opening it fails.
  if (settings.databaseUrl !== undefined) return settings;
  const file = join(settings.dataDir, DATABASE_FILE);
  if (!existsSync(file))
    throw new DatabaseOpenError(file, "there is no such file; MEMPREFIX_DATA_DIR says which directory");
  return settings;
}

/**
 * Creates a directory and its missing parents. Throws what `mkdir` throws. Node's own `recursive` loops forever on a file system that answers
 * `ENOENT` to every new directory, as /proc does: it takes the parent for missing, finds it, and retries.
 */
export function makeDirectory(path: string): void {
  const missing = [resolve(path)];
  for (let above = dirname(resolve(path)); !existsSync(above); above = dirname(above)) missing.push(above);
  for (const directory of missing.reverse()) makeOne(directory);
}

function makeOne(directory: string): void {
  try {
    mkdirSync(directory);
  } catch (error) {
    // It exists, or another process created it first.
    if (!existsSync(directory) || !statSync(directory).isDirectory()) throw error;
  }
}
