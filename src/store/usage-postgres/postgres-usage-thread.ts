import { workerData } from "node:worker_threads";
import { StoreUnavailableError } from "../api/store.js";
import type { UsageBounds } from "../api/usage-log.js";
import { answerUsageCalls } from "../usage/usage-thread-calls.js";
import { PostgresUsageLog } from "./postgres-usage-log.js";

/** The thread that records into PostgreSQL, so that no compose waits while a batch is added up. */
const { url, bounds } = workerData as { readonly url: string; readonly bounds: UsageBounds };
const log = new PostgresUsageLog(url, bounds);

answerUsageCalls(
  (method, args) => Reflect.apply(log[method] as (...args: readonly unknown[]) => unknown, log, [...args]),
  (error) => (error instanceof StoreUnavailableError ? error.fault : null),
);
