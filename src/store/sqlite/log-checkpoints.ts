import type Database from "better-sqlite3";

/** Calls between two checkpoints: some 4 MB of log. */
const CALLS_BETWEEN = 512;

/**
 * Checkpoints the write-ahead log from the thread that writes it, after an answer was given. Nobody else writes meanwhile, so the whole log
 * is copied and begins again: it stays short.
 */
export class LogCheckpoints {
  #calls = 0;

  constructor(private readonly sqlite: Database.Database) {}

  /** To be called after each transaction, with the number of calls in it. */
  wrote(calls: number): void {
    this.#calls += calls;
    if (this.#calls < CALLS_BETWEEN) return;
    this.#calls = 0;
    try {
      this.sqlite.pragma("wal_checkpoint(PASSIVE)");
    } catch {
      // What is in the log is durable. The next transaction reports the disk's fault.
    }
  }
}
