import { randomUUID } from "node:crypto";
import { DEFAULT_USAGE_BOUNDS, type UsageBounds, type UsageEntry, type UsageLog } from "../api/usage-log.js";
import { UsageLogOfThread } from "../usage/usage-thread-calls.js";
import { PostgresUsageLog } from "./postgres-usage-log.js";

/**
 * The usage log in PostgreSQL, in a worker thread. Run from source, without a JavaScript file for a thread to load, it works in this thread.
 */
export class ThreadedPostgresUsageLog extends UsageLogOfThread {
  protected readonly isHere = import.meta.filename.endsWith(".ts");
  #here: PostgresUsageLog | null = null;
  /** Of batches whose recording may have failed: one that is handed over again has the same. */
  readonly #batchIds = new WeakMap<readonly UsageEntry[], string>();

  constructor(
    private readonly url: string,
    private readonly bounds: UsageBounds = DEFAULT_USAGE_BOUNDS,
  ) {
    super(new URL("./postgres-usage-thread.js", import.meta.url), { url, bounds });
  }

  override record: UsageLog["record"] = (batch, now) => {
    const id = this.#batchIds.get(batch) ?? randomUUID();
    this.#batchIds.set(batch, id);
    return this.call("record", [batch, now, id]);
  };

  protected get isStartedHere(): boolean {
    return this.#here !== null;
  }

  protected async callHere<T>(method: keyof UsageLog, args: readonly unknown[]): Promise<T> {
    this.#here ??= new PostgresUsageLog(this.url, this.bounds);
    const work = this.#here[method] as (...args: readonly unknown[]) => Promise<T>;
    return Reflect.apply(work, this.#here, [...args]);
  }
}
