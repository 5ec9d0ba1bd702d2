import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../../core/text/thrown.js";
import { StoreUnavailableError } from "../api/store.js";
import type { UsageBounds } from "../api/usage-log.js";
import { stayInBackground } from "../threads/worker-calls.js";
import { OpenedUsageLog, type UsageCall, type UsageOutcome, type UsagePlace } from "./threaded-usage-log.js";

/** The thread of the usage log, so that no compose waits for its reads and writes, nor while a batch is added up. */
const { place, bounds } = workerData as { readonly place: UsagePlace; readonly bounds: UsageBounds };
const log = new OpenedUsageLog(place, bounds);

stayInBackground();
parentPort?.on("message", async ({ id, method, args }: UsageCall) => {
  let outcome: UsageOutcome;
  try {
    outcome = { id, result: await log.call(method, args) };
  } catch (error) {
    const problem = messageOf(error);
    outcome = { id, problem, fault: error instanceof StoreUnavailableError ? error.fault : null };
  }
  parentPort?.postMessage(outcome);
});
