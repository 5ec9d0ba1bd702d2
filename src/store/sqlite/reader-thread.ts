import { parentPort, workerData } from "node:worker_threads";
import type { SqlValue } from "../database.js";
import { stayInBackground } from "../threads/worker-calls.js";
import { Connection } from "./connection.js";
import { outcomeOf, type ReaderAnswer, type ReaderCall } from "./writer.js";

/*
 * The thread that reads many rows of a file, with a connection of its own, so that no compose waits for the sums of the dashboard.
 */

const connection = Connection.to((workerData as { readonly file: string }).file);
stayInBackground();

function answerTo(text: string, values: readonly SqlValue[]): ReaderAnswer {
  try {
    return { rows: connection.read(text, values) };
  } catch (error) {
    return { outcome: outcomeOf(error) };
  }
}

parentPort?.on("message", (call: ReaderCall & { readonly id: number }) => {
  if (call.ask === "read") parentPort?.postMessage({ id: call.id, ...answerTo(call.text, call.values) });
  else {
    connection.close();
    parentPort?.close();
  }
});
