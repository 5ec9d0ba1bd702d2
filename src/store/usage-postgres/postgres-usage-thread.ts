import { parentPort, workerData } from "node:worker_threads";
import { StoreUnavailableError } from "../api/store.js";
import type { UsageBounds } from "../api/usage-log.js";
import { PostgresUsageLog } from "./postgres-usage-log.js";
import type { PostgresUsageCall, PostgresUsageOutcome } from "./threaded-postgres-usage-log.js";

/** The thread that records into PostgreSQL, so that no compose waits while a batch is added up. */
const { url, bounds } = workerData as { readonly url: string; readonly bounds: UsageBounds };
const log = new PostgresUsageLog(url, bounds);

parentPort?.on("message", async ({ id, method, args }: PostgresUsageCall) => {
  const work = log[method] as (...args: readonly unknown[]) => Promise<unknown>;
  let outcome: PostgresUsageOutcome;
  try {
    outcome = { id, result: await Reflect.apply(work, log, [...args]) };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    outcome = { id, problem, fault: error instanceof StoreUnavailableError ? error.fault : null };
  }
  parentPort?.postMessage(outcome);
});
