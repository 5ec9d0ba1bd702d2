import { parentPort, workerData } from "node:worker_threads";
import { connect } from "../database/connection.js";
import type { ReadingCall, WritingCall } from "./journal-calls.js";
import type { ThreadAnswer, ThreadCall, ThreadTask } from "./journal-messages.js";
import { type Outcome, outcomeOfError } from "./journal-outcomes.js";
import { JournalReads } from "./journal-reads.js";
import { JournalWriter } from "./journal-writer.js";
import { waitingForLocks } from "./lock-wait.js";
import { LogCheckpoints } from "./log-checkpoints.js";

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
