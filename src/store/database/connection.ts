import Database from "better-sqlite3";
import { DigestSeal } from "./digest-seal.js";
import { faultOf } from "./sqlite-faults.js";

/** A connection to a database file, and the key of its digests. */
export interface DatabaseConnection {
  readonly sqlite: Database.Database;
  readonly digests: DigestSeal;
}

/** Milliseconds that a commit waits for a lock. It blocks the thread, so callers wait longer between their own retries. */
export const COMMIT_WAIT_MS = 20;

/**
 * Commits survive a kill of the process at any point; a power cut may lose the last ones, never the file's integrity. FULL, which survives
 * that too, waits for the disk once for each group: 3 to 4 ms of every answer, and a sixth of the throughput, on a virtual machine's disk.
 */
export const SYNCHRONOUS = "NORMAL";

/** Opens one more connection to a file that this process has open, so its schema is up to date. Throws SQLite's errors. */
export function connect(file: string): DatabaseConnection {
  const sqlite = new Database(file, { fileMustExist: true, timeout: COMMIT_WAIT_MS });
  sqlite.pragma(`synchronous = ${SYNCHRONOUS}`);
  sqlite.pragma("foreign_keys = ON");
  sqlite.pragma("secure_delete = ON");
  return { sqlite, digests: DigestSeal.of(sqlite) };
}

/** Checkpoints and truncates the log; false where a reader still needs it, or the disk fails. */
export function eraseLog(sqlite: Database.Database): boolean {
  try {
    const [outcome] = sqlite.pragma("wal_checkpoint(TRUNCATE)") as { readonly busy: number }[];
    return outcome?.busy === 0;
  } catch (error) {
    if (faultOf(error) === null) throw error;
    return false;
  }
}
