import { randomUUID } from "node:crypto";
import { Worker } from "node:worker_threads";
import { type StoreFault, StoreUnavailableError } from "../api/store.js";
import { DEFAULT_USAGE_BOUNDS, type UsageBounds, type UsageEntry, type UsageLog } from "../api/usage-log.js";
import { PostgresUsageLog } from "./postgres-usage-log.js";

/** A call of a method of {@link PostgresUsageLog}. */
export interface PostgresUsageCall {
  readonly id: number;
  readonly method: keyof PostgresUsageLog;
  readonly args: readonly unknown[];
}

/** Its result, or why there is none. */
export type PostgresUsageOutcome = { readonly id: number } & (
  | { readonly result: unknown }
  | { readonly problem: string; readonly fault: StoreFault | null }
);

interface Waiting {
  readonly resolve: (result: never) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The usage log in PostgreSQL, in a worker thread, which starts with the first call and does not keep the process alive. Run from source,
 * without a JavaScript file for a thread to load, it works in this thread.
 */
export class ThreadedPostgresUsageLog implements UsageLog {
  #worker: Worker | null = null;
  #here: PostgresUsageLog | null = null;
  #calls = 0;
  #isClosed = false;
  readonly #waiting = new Map<number, Waiting>();
  /** Of batches whose recording may have failed: one that is handed over again has the same. */
  readonly #batchIds = new WeakMap<readonly UsageEntry[], string>();

  constructor(
    private readonly url: string,
    private readonly bounds: UsageBounds = DEFAULT_USAGE_BOUNDS,
  ) {}

  summary: UsageLog["summary"] = (view) => this.#call("summary", [view]);
  misses: UsageLog["misses"] = (view) => this.#call("misses", [view]);
  prompts: UsageLog["prompts"] = (filter, before, limit) => this.#call("prompts", [filter, before, limit]);
  prompt: UsageLog["prompt"] = (key) => this.#call("prompt", [key]);
  users: UsageLog["users"] = (tenant, order, limit) => this.#call("users", [tenant, order, limit]);
  conversations: UsageLog["conversations"] = (of, order, limit) => this.#call("conversations", [of, order, limit]);
  conversation: UsageLog["conversation"] = (of) => this.#call("conversation", [of]);
  note: UsageLog["note"] = (note) => this.#call("note", [note]);
  replaceMark: UsageLog["replaceMark"] = (name, text) => this.#call("replaceMark", [name, text]);
  deleteUser: UsageLog["deleteUser"] = (tenant, userId, now) => this.#call("deleteUser", [tenant, userId, now]);
  exportUser: UsageLog["exportUser"] = (tenant, userId) => this.#call("exportUser", [tenant, userId]);
  record: UsageLog["record"] = (batch, now, of = []) => {
    const id = this.#batchIds.get(batch) ?? randomUUID();
    this.#batchIds.set(batch, id);
    return this.#call("record", [batch, now, of, id]);
  };

  async close(): Promise<void> {
    if (this.#isClosed) return;
    if (this.#worker !== null) await this.#call("close", []).catch(() => {});
    this.#isClosed = true;
    await this.#here?.close();
    await this.#worker?.terminate();
  }

  #call<T>(method: keyof PostgresUsageLog, args: readonly unknown[]): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error("the usage log is closed"));
    if (import.meta.filename.endsWith(".ts")) {
      this.#here ??= new PostgresUsageLog(this.url, this.bounds);
      const work = this.#here[method] as (...args: readonly unknown[]) => Promise<T>;
      return Reflect.apply(work, this.#here, [...args]);
    }
    const worker = this.#started();
    const id = this.#calls++;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, method, args } satisfies PostgresUsageCall);
    });
  }

  #started(): Worker {
    if (this.#worker !== null) return this.#worker;
    const workerData = { url: this.url, bounds: this.bounds };
    const worker = new Worker(new URL("./postgres-usage-thread.js", import.meta.url), { workerData });
    worker.on("message", (outcome: PostgresUsageOutcome) => this.#settle(worker, outcome));
    const end = (error: Error) => {
      if (this.#worker === worker) this.#worker = null;
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    };
    worker.on("error", end);
    worker.on("exit", () => end(new Error("the thread of the usage log ended")));
    worker.unref();
    this.#worker = worker;
    return worker;
  }

  #settle(worker: Worker, outcome: PostgresUsageOutcome): void {
    const waiting = this.#waiting.get(outcome.id);
    this.#waiting.delete(outcome.id);
    if (this.#waiting.size === 0) worker.unref();
    if ("result" in outcome) waiting?.resolve(outcome.result as never);
    else
      waiting?.reject(outcome.fault === null ? new Error(outcome.problem) : new StoreUnavailableError(outcome.fault));
  }
}
