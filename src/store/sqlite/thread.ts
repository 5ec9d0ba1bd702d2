import { parentPort, workerData } from "node:worker_threads";
import { stayInBackground } from "../../threads/worker-calls.js";
import { Connection } from "./connection.js";
import { type FileCall, type ThreadData, Writer } from "./writer.js";

/* A thread with its own connection to a file, so that the event loop does not wait for the disk. Calls run in order. */

const { file, purpose } = workerData as ThreadData;
const connection = Connection.to(file);
const writer = new Writer(connection);
if (purpose === "read") stayInBackground();
// Pages of indexes by scope are rewritten often; 4 MB.
else connection.sqlite.pragma("cache_size = -4096");

parentPort?.on("message", (call: FileCall & { readonly id: number }) => {
  if (call.ask !== "close") parentPort?.postMessage({ id: call.id, ...writer.answer(call) });
  else {
    connection.close();
    parentPort?.close();
  }
});
