import { parentPort } from "node:worker_threads";
import Database from "better-sqlite3";

/*
 * The thread that moves what was committed from the log to the database file, which waits for the disk. It holds the file open no longer
 * than that takes, so that who closes it last is who serves from it.
 */

/** What SQLite says of a checkpoint: pages in the log, and of them those that are in the database file too. */
export interface LogProgress {
  readonly log: number;
  readonly checkpointed: number;
}

parentPort?.on("message", (file: string) => {
  const sqlite = new Database(file, { fileMustExist: true, timeout: 0 });
  try {
    const [progress] = sqlite.pragma("wal_checkpoint(PASSIVE)") as [LogProgress];
    parentPort?.postMessage({ log: progress.log, checkpointed: progress.checkpointed } satisfies LogProgress);
  } finally {
    sqlite.close();
  }
});
