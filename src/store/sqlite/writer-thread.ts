import { parentPort, workerData } from "node:worker_threads";
import { Connection } from "./connection.js";
import { Writer, type WriterAnswer, type WriterCall } from "./writer.js";

/*
 * The thread that writes a file, with a connection of its own, so that nobody else waits for the disk. Calls are done in order.
 */

const connection = Connection.to((workerData as { readonly file: string }).file);
// Pages of indexes by scope are written all over; 4 MB.
connection.sqlite.pragma("cache_size = -4096");
const writer = new Writer(connection);

function answer(id: number, answered: WriterAnswer): void {
  parentPort?.postMessage({ id, ...answered });
}

parentPort?.on("message", (call: WriterCall & { readonly id: number }) => {
  if (call.ask === "write") answer(call.id, { outcomes: writer.write(call.transactions) });
  else if (call.ask === "erase") answer(call.id, { isErased: writer.erase(call.texts) });
  else {
    writer.close();
    parentPort?.close();
  }
});
