import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";

/** How long to wait for another process's lock before an erasure is postponed, in milliseconds. Waiting blocks the event loop. */
const LOCK_WAIT_MS = 1_000;

/** Stands beside the databases while something deleted is still to be erased. */
export const ERASURE_MARKER = "erasure-pending";

/**
 * Makes sure that deleted text leaves the disk too. SQLite's DELETE only marks space as free: the text stays readable in the file until
 * something else is written there, and Mem0 opens its databases without `secure_delete`. VACUUM rewrites the file without it.
 *
 * A marker file says that something was deleted and not yet erased. It outlives a crash, so that {@link Erasure.resume} can finish.
 */
export class Erasure {
  readonly #marker: string;
  readonly #databases: readonly string[];

  /** `databases` are file names in `directory`; missing ones are skipped. */
  constructor(directory: string, databases: readonly string[]) {
    this.#marker = join(directory, ERASURE_MARKER);
    this.#databases = databases.map((name) => join(directory, name));
  }

  /** Call before rows are deleted. */
  begin(): void {
    writeFileSync(this.#marker, "");
  }

  /**
   * Call after rows were deleted; takes time linear in the databases' size. False where a database could not be rewritten
   * (another process locks it, the disk is full): the rows are deleted anyway, and the next `finish` or `resume` tries again.
   */
  finish(): boolean {
    try {
      for (const database of this.#databases) rewrite(database);
    } catch {
      return false;
    }
    rmSync(this.#marker, { force: true });
    return true;
  }

  /** Finishes what a process before this one began. */
  resume(): void {
    if (existsSync(this.#marker)) this.finish();
  }
}

/**
 * Through a connection of its own. That is safe beside Mem0's: it holds no lock between its statements, each of which runs to its end
 * within one turn of the event loop.
 */
function rewrite(path: string): void {
  if (!existsSync(path)) return;
  const database = new Database(path, { fileMustExist: true, timeout: LOCK_WAIT_MS });
  try {
    // VACUUM builds its copy in a temporary file, which would lie outside the data directory.
    database.pragma("temp_store = MEMORY");
    database.exec("VACUUM");
    // Mem0 uses no write-ahead log today; were there one, it would still hold the old pages.
    database.pragma("wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}
