import { parentPort } from "node:worker_threads";
import Database from "better-sqlite3";

/*
 * A worker thread that checkpoints the write-ahead log, which waits for the disk. It closes the file after each checkpoint, so that the
 * serving connection is the last one to close it.
 */

/** A checkpoint's result: pages in the log, and those of them that were copied to the database file. */
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
