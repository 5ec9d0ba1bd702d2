import { Worker } from "node:worker_threads";
import type Database from "better-sqlite3";
import type { LogProgress } from "./checkpoint-thread.js";

/** Commits between two checkpoints; with 20 memories each writes some 20 pages. */
const COMMITS_BETWEEN = 512;
/** Pages after which the log is restarted, 64 MB: the serving thread then waits for the disk, some tens of milliseconds. */
const LONG_LOG = 32_000;
/** Pages that may be left to the serving thread, so that it does not wait for long. */
const SHORT_REST = 512;
/** Rounds of the worker before the rest is taken however long it is, as commits go on meanwhile. */
const MOST_ROUNDS = 4;
/** Pages at which SQLite checkpoints by itself where the worker fails: far past its own limit. */
const LAST_RESORT = 4 * LONG_LOG;

/**
 * Checkpoints the write-ahead log in a worker thread: SQLite's automatic checkpoint would block the serving thread for as long as the disk
 * takes. The worker copies all it can; the serving thread copies the few pages committed meanwhile, after which the log is restarted.
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
    // Run from source there is no worker file to load; a database in memory has no log.
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
    // An open transaction has to end first.
    else if (this.sqlite.inTransaction) this.#leavesRest = true;
    else this.#takeRest();
  }

  #takeRest(): void {
    this.#leavesRest = false;
    try {
      if (this.sqlite.open) this.sqlite.pragma("wal_checkpoint(PASSIVE)");
    } catch {
      // What is in the log is durable. The next commit reports the disk's fault.
    }
  }

  /** The next checkpoint starts a new worker. */
  #failed(worker: Worker): void {
    if (this.#worker === worker) this.#worker = null;
    this.#isBusy = false;
  }
}
