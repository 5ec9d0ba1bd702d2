import { Worker } from "node:worker_threads";
import type Database from "better-sqlite3";
import type { LogProgress } from "./checkpoint-thread.js";

/** Commits between two checkpoints: some 20 pages each with 20 memories, however many share a transaction. */
const COMMITS_BETWEEN = 512;
/** Pages of a log that is long enough to be begun again, 64 MB: this thread waits for the disk then, some tens of milliseconds. */
const LONG_LOG = 32_000;
/** Pages that are left for this thread, so that it does not wait for long. */
const SHORT_REST = 512;
/** How often the rest is tried to be made short before it is taken as it is: writing goes on meanwhile. */
const MOST_ROUNDS = 4;
/** Where the thread is, SQLite's own checkpoints are only for when it fails: pages of the log, far from where it is begun again. */
const LAST_RESORT = 4 * LONG_LOG;

/**
 * Keeps the write-ahead log short, in a thread of its own: a checkpoint of SQLite's own making stops everything that is served for as long
 * as the disk takes. The thread writes all it can; the few pages that came meanwhile are this thread's, after which the log begins anew.
 */
export class ThreadedCheckpoints {
  #worker: Worker | null = null;
  #isBusy = false;
  #commits = 0;
  #rounds = 0;
  #leavesRest = false;

  constructor(private readonly sqlite: Database.Database) {}

  /** To be called after each transaction, with the number of commits in it. */
  committed(commits: number): void {
    if (this.#leavesRest) this.#takeRest();
    this.#commits += commits;
    if (this.#commits < COMMITS_BETWEEN || this.#isBusy) return;
    // From source there is nothing that a thread could load, and in memory there is no log.
    if (this.sqlite.memory || import.meta.filename.endsWith(".ts")) return;
    this.#commits = 0;
    this.#rounds = 0;
    this.#ask();
  }

  close(): void {
    void this.#worker?.terminate();
    this.#worker = null;
  }

  #ask(): void {
    this.#isBusy = true;
    this.#rounds++;
    this.#started().postMessage(this.sqlite.name);
  }

  #started(): Worker {
    if (this.#worker !== null) return this.#worker;
    const worker = new Worker(new URL("./checkpoint-thread.js", import.meta.url));
    worker.on("message", (progress: LogProgress) => this.#went(progress));
    worker.on("error", () => this.#failed(worker));
    worker.unref();
    this.#worker = worker;
    this.sqlite.pragma(`wal_autocheckpoint = ${LAST_RESORT}`);
    return worker;
  }

  #went({ log, checkpointed }: LogProgress): void {
    this.#isBusy = false;
    if (this.#worker === null || log < LONG_LOG) return;
    if (log - checkpointed > SHORT_REST && this.#rounds < MOST_ROUNDS) this.#ask();
    // A transaction that has begun has to end first.
    else if (this.sqlite.inTransaction) this.#leavesRest = true;
    else this.#takeRest();
  }

  #takeRest(): void {
    this.#leavesRest = false;
    try {
      if (this.sqlite.open) this.sqlite.pragma("wal_checkpoint(PASSIVE)");
    } catch {
      // What is in the log is stored. What ails the disk is said by the next commit.
    }
  }

  /** The next one has a new thread. */
  #failed(worker: Worker): void {
    if (this.#worker === worker) this.#worker = null;
    this.#isBusy = false;
  }
}
