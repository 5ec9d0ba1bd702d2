import Database from "better-sqlite3";
import { keptIn } from "../../core/text/collections.js";
import type { SqlValue, Statement } from "../database.js";
import { namedFault } from "../store.js";
import { faultOf } from "./faults.js";

/** Milliseconds that a statement waits for another process's lock. It blocks the thread. */
export const LOCK_MS = 20;
/** Milliseconds that a transaction waits for it: `memprefix keys`, a backup and the `sqlite3` command hold it for a moment. */
const BEGIN_MS = 2_000;
const AGAIN_MS = 5;

/**
 * Commits survive a kill of the process at any point; a power cut may lose the last ones, never the file's integrity. FULL, which survives
 * that too, waits for the disk once for each group: 3 to 4 ms of every answer, and a sixth of the throughput, on a virtual machine's disk.
 */
export const SYNCHRONOUS = "NORMAL";

/** A connection to a database file, whose statements are prepared once: their texts are the program's own, and few. */
export class Connection {
  readonly #prepared = new Map<string, Database.Statement>();

  constructor(readonly sqlite: Database.Database) {}

  /** Opens one more connection to a file that this process has open. Throws SQLite's errors. */
  static to(file: string): Connection {
    const sqlite = new Database(file, { fileMustExist: true, timeout: LOCK_MS });
    sqlite.pragma(`synchronous = ${SYNCHRONOUS}`);
    // Deleted text is overwritten.
    sqlite.pragma("secure_delete = ON");
    return new Connection(sqlite);
  }

  /** The rows of a query; throws the store's faults. */
  read<R extends object>(text: string, values: readonly SqlValue[]): R[] {
    return named(() => this.#statement(text).all(bound(values)) as R[]);
  }

  run({ text, values }: Statement): void {
    named(() => this.#statement(text).run(bound(values)));
  }

  /** Runs statements in one transaction; throws the store's faults, and then nothing of it is stored. */
  transaction(work: () => void): void {
    named(() => {
      whileLocked(() => this.sqlite.exec("begin immediate"), BEGIN_MS);
      try {
        work();
        this.sqlite.exec("commit");
      } catch (error) {
        // Some errors, a full disk's for one, have rolled it back.
        if (this.sqlite.inTransaction) this.sqlite.exec("rollback");
        throw error;
      }
    });
  }

  /** Copies the write-ahead log into the file and empties it; false where a reader still needs it, or the disk fails. */
  emptyLog(): boolean {
    try {
      const [outcome] = this.sqlite.pragma("wal_checkpoint(TRUNCATE)") as { readonly busy: number }[];
      return outcome?.busy === 0;
    } catch {
      return false;
    }
  }

  close(): void {
    this.sqlite.close();
  }

  #statement(text: string): Database.Statement {
    return keptIn(this.#prepared, text, () => this.sqlite.prepare(text));
  }
}

/** Runs `work`, for so many milliseconds again and again while another process holds a lock. Blocks the thread. */
export function whileLocked<T>(work: () => T, waitMs: number): T {
  for (const deadline = performance.now() + waitMs; ; sleep(AGAIN_MS)) {
    try {
      return work();
    } catch (error) {
      if (faultOf(error) !== "busy" || performance.now() >= deadline) throw error;
    }
  }
}

/** Blocks the thread. */
export function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Parameters by their names: `$1` is `1`. */
function bound(values: readonly SqlValue[]): Record<string, SqlValue> {
  return Object.fromEntries(values.map((value, at) => [at + 1, value]));
}

function named<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw namedFault(error, faultOf(error));
  }
}
