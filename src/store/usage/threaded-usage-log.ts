import { existsSync } from "node:fs";
import { StoreUnavailableError } from "../api/store.js";
import { DEFAULT_USAGE_BOUNDS, type UsageBounds, type UsageLog } from "../api/usage-log.js";
import { faultOf } from "../database/sqlite-faults.js";
import { SqliteUsageLog } from "./sqlite-usage-log.js";
import { openUsageDatabase } from "./usage-database.js";
import { UsageLogOfThread } from "./usage-thread-calls.js";

/**
 * The usage log in SQLite, in a worker thread. Run from source, without a JavaScript file for a thread to load, and in memory
 * (`":memory:"`), it works in this thread.
 */
export class ThreadedUsageLog extends UsageLogOfThread {
  protected readonly isHere: boolean;
  #here: SqliteUsageLog | null = null;

  constructor(
    private readonly file: string,
    private readonly bounds: UsageBounds = DEFAULT_USAGE_BOUNDS,
  ) {
    super(new URL("./usage-thread.js", import.meta.url), { file, bounds });
    this.isHere = file === ":memory:" || import.meta.filename.endsWith(".ts");
  }

  // A process that never recorded anything need not make the file.
  override deleteUser: UsageLog["deleteUser"] = async (tenant, userId, now) => {
    if (this.#isMade) await this.call("deleteUser", [tenant, userId, now]);
  };
  override exportUser: UsageLog["exportUser"] = async (tenant, userId) =>
    this.#isMade ? await this.call("exportUser", [tenant, userId]) : [];

  protected get isStartedHere(): boolean {
    return this.#here !== null;
  }

  get #isMade(): boolean {
    return this.isStarted || existsSync(this.file);
  }

  protected async callHere<T>(method: keyof UsageLog, args: readonly unknown[]): Promise<T> {
    try {
      this.#here ??= new SqliteUsageLog(openUsageDatabase(this.file), this.bounds);
      const work = this.#here[method] as (...args: readonly unknown[]) => T;
      return Reflect.apply(work, this.#here, [...args]);
    } catch (error) {
      const fault = faultOf(error);
      throw fault === null ? error : new StoreUnavailableError(fault, { cause: error });
    }
  }
}
