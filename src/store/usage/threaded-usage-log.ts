import { existsSync } from "node:fs";
import { type StoreFault, StoreUnavailableError } from "../api/store.js";
import { DEFAULT_USAGE_BOUNDS, type UsageBounds, type UsageLog } from "../api/usage-log.js";
import { STORE_THREAD, WorkerCalls } from "../threads/worker-calls.js";
import { DatabaseUsageLog } from "./usage-log.js";

/** A SQLite file, or `":memory:"`; or the URL of a database that `openPostgres` brought up to date. */
export type UsagePlace = { readonly file: string } | { readonly url: string };

/** A call of a usage log's method. */
export interface UsageCall {
  readonly id: number;
  readonly method: keyof UsageLog;
  readonly args: readonly unknown[];
}

/** Its result, or why there is none. */
export type UsageOutcome = { readonly id: number } & (
  | { readonly result: unknown }
  | { readonly problem: string; readonly fault: StoreFault | null }
);

const METHODS = [
  ...["record", "summary", "misses", "prompts", "prompt"],
  ...["note", "replaceMark", "deleteUser", "exportUser", "close"],
] as readonly (keyof UsageLog)[];

/** A usage log in this thread: opened with the first call, and by the next where that failed. */
export class OpenedUsageLog {
  #log: Promise<UsageLog> | null = null;

  constructor(
    private readonly place: UsagePlace,
    private readonly bounds: UsageBounds,
  ) {}

  get isOpened(): boolean {
    return this.#log !== null;
  }

  async call(method: keyof UsageLog, args: readonly unknown[]): Promise<unknown> {
    this.#log ??= this.#open();
    const log = await this.#log.catch((error: unknown) => {
      this.#log = null;
      throw error;
    });
    const work = log[method] as (...args: readonly unknown[]) => Promise<unknown>;
    return Reflect.apply(work, log, args);
  }

  async #open(): Promise<UsageLog> {
    const { place, bounds } = this;
    if ("url" in place) {
      const { PostgresUsageDatabase } = await import("./postgres-usage-database.js");
      return new DatabaseUsageLog(new PostgresUsageDatabase(place.url), bounds);
    }
    const { SqliteUsageDatabase } = await import("./sqlite-usage-database.js");
    return new DatabaseUsageLog(new SqliteUsageDatabase(place.file), bounds);
  }
}

/**
 * A usage log in a worker thread. Run from source, without a JavaScript file for a thread to load, and in memory, it works in this thread.
 */
export function threadedUsageLog(place: UsagePlace, bounds: UsageBounds = DEFAULT_USAGE_BOUNDS): UsageLog {
  const file = "file" in place ? place.file : null;
  const here = file === ":memory:" || import.meta.filename.endsWith(".ts") ? new OpenedUsageLog(place, bounds) : null;
  const calls = new WorkerCalls<UsageCall, UsageOutcome>(
    new URL("./usage-thread.js", import.meta.url),
    { ...STORE_THREAD, workerData: { place, bounds } },
    (cause) => cause ?? new Error("the thread of the usage log ended"),
  );
  let isClosed = false;

  async function call(method: keyof UsageLog, args: readonly unknown[]): Promise<unknown> {
    if (isClosed) throw new Error("the usage log is closed");
    if (here !== null) return here.call(method, args);
    const outcome = await calls.ask({ method, args });
    if ("result" in outcome) return outcome.result;
    throw outcome.fault === null ? new Error(outcome.problem) : new StoreUnavailableError(outcome.fault);
  }

  const log = Object.fromEntries(
    METHODS.map((method) => [method, (...args: readonly unknown[]) => call(method, args)]),
  ) as unknown as UsageLog;
  const isStarted = () => here?.isOpened ?? calls.isStarted;
  // A process that never recorded anything need not make the file.
  const isMade = () => file === null || isStarted() || existsSync(file);
  return {
    ...log,
    deleteUser: async (...of) => (isMade() ? log.deleteUser(...of) : undefined),
    exportUser: async (...of) => (isMade() ? log.exportUser(...of) : []),
    async close() {
      if (isClosed) return;
      if (isStarted()) await log.close().catch(() => {});
      isClosed = true;
      await calls.terminate();
    },
  };
}
