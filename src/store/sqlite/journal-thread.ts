import { parentPort, workerData } from "node:worker_threads";
import { connect } from "../database/open-database.js";
import {
  faultBehind,
  JournalWriter,
  LogCheckpoints,
  type Outcome,
  outcomeOfError,
  type ThreadAnswer,
  type ThreadCall,
  type WritingCall,
} from "./journal-writer.js";

/** Milliseconds that a call waits for another process's lock in all, before its caller gets the error and may wait longer by itself … */
const MOST_WAIT_MS = 500;
/** … and before its first retry, which doubles up to the last one. */
const FIRST_PAUSE_MS = 1;
const LAST_PAUSE_MS = 64;

/** Runs `work` again while another process holds a lock. Blocks the thread. */
function waitingForLocks<T>(work: () => T): T {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  const deadline = performance.now() + MOST_WAIT_MS;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LAST_PAUSE_MS)) {
    try {
      return work();
    } catch (error) {
      if (faultBehind(error) !== "busy" || performance.now() + pause >= deadline) throw error;
      Atomics.wait(sleeper, 0, 0, pause);
    }
  }
}

/*
 * The thread that writes a journal, with a connection of its own, so that nobody else waits for the disk. Tasks are done in order, each within
 * one message.
 */

const database = connect((workerData as { readonly file: string }).file);
// Pages of the index by scope are written all over; 4 MB.
database.sqlite.pragma("cache_size = -4096");
const writer = new JournalWriter(database);
const checkpoints = new LogCheckpoints(database.sqlite);

function answer(message: ThreadAnswer): void {
  parentPort?.postMessage(message);
}

function apply(calls: readonly WritingCall[]): readonly Outcome[] {
  try {
    return waitingForLocks(() => writer.run(calls));
  } catch (error) {
    return calls.map(() => outcomeOfError(error));
  }
}

parentPort?.on("message", (call: ThreadCall) => {
  if (call.ask === "write") {
    answer({ id: call.id, outcomes: apply(call.calls) });
    checkpoints.wrote(call.calls.length);
  } else if (call.ask === "erased")
    void writer.erased().then(() => answer({ id: call.id, outcomes: [{ value: undefined }] }));
  else {
    writer.close();
    database.sqlite.close();
    parentPort?.close();
  }
});
