import { workerData } from "node:worker_threads";
import type { UsageBounds } from "../api/usage-log.js";
import { faultOf } from "../database/sqlite-faults.js";
import { SqliteUsageLog } from "./sqlite-usage-log.js";
import { openUsageDatabase } from "./usage-database.js";
import { answerUsageCalls } from "./usage-thread-calls.js";

/** The thread that keeps the usage log, so that no compose waits for its reads and writes. */
const { file, bounds } = workerData as { readonly file: string; readonly bounds: UsageBounds };
let log: SqliteUsageLog | null = null;

answerUsageCalls((method, args) => {
  log ??= new SqliteUsageLog(openUsageDatabase(file), bounds);
  const work = log[method] as (...args: readonly unknown[]) => unknown;
  const result = Reflect.apply(work, log, [...args]);
  if (method === "close") log = null;
  return result;
}, faultOf);
