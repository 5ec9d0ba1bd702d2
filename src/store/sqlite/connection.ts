import Database from "better-sqlite3";
import { keptIn } from "../../core/text/collections.js";
import type { SqlValue, Statement } from "../database.js";
import { namedFault } from "../store.js";
import { faultOf } from "./faults.js";

/** Milliseconds that a statement waits for another process's lock. Blocks the thread. */
export const LOCK_MS = 20;
/** Milliseconds that a transaction waits for it: `memprefix keys`, a backup and the `sqlite3` command hold it briefly. */
const BEGIN_MS = 2_000;
const AGAIN_MS = 5;

/**
 * A commit survives a kill of the process; a power cut may lose the last ones, but never damages the file. FULL survives that too, but waits
 * for the disk once per group: 3 to 4 ms of every answer, and a sixth of the throughput, on a virtual machine's disk.
 */
export const SYNCHRONOUS = "NORMAL";

/** A connection to a database file. Prepares each statement once: the program has only few texts. */
export class Connection {
  readonly #prepared = new Map<string, Database.Statement>();

  constructor(readonly sqlite: Database.Database) {}

  /** Opens one more connection to a file that this process has open. Throws SQLite's errors. */
  static to(file: string): Connection {
    const sqlite = new Database(file, { fileMustExist: true, timeout: LOCK_MS });
    sqlite.pragma(`synchronous = ${SYNCHRONOUS}`);
    // Overwrites deleted text.
    sqlite.pragma("secure_delete = ON");
    return new Connection(sqlite);
  }

  read<R extends object>(text: string, values: readonly SqlValue[]): R[] {
    return named(() => this.#statement(text).all(bound(values)) as R[]);
  }

  run({ text, values }: Statement): void {
    named(() => this.#statement(text).run(bound(values)));
  }

  /** Runs statements in one transaction; throws the store's faults, and then nothing is stored. */
  transaction(work: () => void): void {
    named(() => {
      whileLocked(() => this.sqlite.exec("begin immediate"), BEGIN_MS);
      try {
        work();
        this.sqlite.exec("commit");
      } catch (error) {
        // Some errors, such as a full disk, have rolled it back already.
        if (this.sqlite.inTransaction) this.sqlite.exec("rollback");
        throw error;
      }
    });
  }

  /** Copies the write-ahead log into the file and empties it. False if a reader still needs it, or the disk fails. */
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

/** Repeats `work` for up to `waitMs` while another process holds a lock. Blocks the thread. */
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
