import { parentPort } from "node:worker_threads";
import { planBatch } from "../core/index.js";
import { messageOf } from "../core/text/thrown.js";
import type { PlanJob } from "./threaded-planning.js";

/** The thread that plans large batches, so that no other request waits for them. */
parentPort?.on("message", ({ id, batch }: PlanJob) => {
  try {
    parentPort?.postMessage({ id, plan: planBatch(...batch) });
  } catch (error) {
    parentPort?.postMessage({ id, problem: messageOf(error) });
  }
});
