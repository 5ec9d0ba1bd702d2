import { parentPort, workerData } from "node:worker_threads";
import { connect } from "../database/open-database.js";
import {
  faultBehind,
  type Outcome,
  outcomeOfError,
  type ReadingCall,
  type ThreadAnswer,
  type ThreadCall,
  type ThreadTask,
  type WritingCall,
} from "./journal-calls.js";
import { JournalReads } from "./journal-reads.js";
import { JournalWriter, LogCheckpoints } from "./journal-writer.js";

/** Milliseconds that a call waits for another process's lock in all, before its caller gets the error and may wait longer by itself … */
const MOST_WAIT_MS = 500;
/** … and before its first retry, which doubles up to the last one. */
const FIRST_PAUSE_MS = 1;
const LAST_PAUSE_MS = 64;

/** Milliseconds before each retry where another process holds a lock; ends where there is no more time. */
function* lockPauses(mostMs = MOST_WAIT_MS): Generator<number> {
  const deadline = performance.now() + mostMs;
  for (let pause = FIRST_PAUSE_MS; performance.now() + pause < deadline; pause = Math.min(2 * pause, LAST_PAUSE_MS))
    yield pause;
}

/** Runs `work` again while another process holds a lock. Blocks the thread: none that serves requests. @param mostMs of waiting in all */
export function waitingForLocks<T>(work: () => T, mostMs = MOST_WAIT_MS): T {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  const pauses = lockPauses(mostMs);
  for (;;) {
    try {
      return work();
    } catch (error) {
      const pause = pauses.next();
      if (faultBehind(error) !== "busy" || pause.done === true) throw error;
      Atomics.wait(sleeper, 0, 0, pause.value);
    }
  }
}

/*
 * A thread with a connection of its own, so that nobody else waits for the disk: the one that writes a journal, or the one that reads it.
 * Tasks are done in order, each within one message.
 */

const { file, task } = workerData as ThreadTask;
const database = connect(file);

function answer(message: ThreadAnswer): void {
  parentPort?.postMessage(message);
}

function read(): (call: ThreadCall) => void {
  database.sqlite.pragma("query_only = ON");
  const reads = new JournalReads(database);
  const one = ({ name, args }: ReadingCall): Outcome => {
    try {
      const method = reads[name] as (...args: readonly unknown[]) => unknown;
      return { value: waitingForLocks(() => Reflect.apply(method, reads, args)) };
    } catch (error) {
      return outcomeOfError(error);
    }
  };
  return (call) => {
    if (call.ask === "read") answer({ id: call.id, outcomes: [one(call.call)] });
    else if (call.ask === "close") end(() => {});
  };
}

function write(): (call: ThreadCall) => void {
  // Pages of the index by scope are written all over; 4 MB.
  database.sqlite.pragma("cache_size = -4096");
  const writer = new JournalWriter(database);
  const checkpoints = new LogCheckpoints(database.sqlite);
  const apply = (calls: readonly WritingCall[]): readonly Outcome[] => {
    try {
      return waitingForLocks(() => writer.run(calls));
    } catch (error) {
      return calls.map(() => outcomeOfError(error));
    }
  };
  return (call) => {
    if (call.ask === "write") {
      answer({ id: call.id, outcomes: apply(call.calls) });
      checkpoints.wrote(call.calls.length);
    } else if (call.ask === "erased")
      void writer.erased().then(() => answer({ id: call.id, outcomes: [{ value: undefined }] }));
    else if (call.ask === "close") end(() => writer.close());
  };
}

function end(work: () => void): void {
  work();
  database.sqlite.close();
  parentPort?.close();
}

parentPort?.on("message", task === "write" ? write() : read());
