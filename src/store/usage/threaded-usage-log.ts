import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { type StoreFault, StoreUnavailableError } from "../api/store.js";
import { faultOf } from "../api/store-faults.js";
import { DEFAULT_USAGE_BOUNDS, type UsageBounds, type UsageLog } from "../api/usage-log.js";
import { SqliteUsageLog } from "./sqlite-usage-log.js";
import { openUsageDatabase } from "./usage-database.js";

/** A call of a method of {@link SqliteUsageLog}. */
export interface UsageCall {
  readonly id: number;
  readonly method: keyof SqliteUsageLog;
  readonly args: readonly unknown[];
}

/** Its result, or why there is none. */
export type UsageOutcome = { readonly id: number } & (
  | { readonly result: unknown }
  | { readonly problem: string; readonly fault: StoreFault | null }
);

interface Waiting {
  readonly resolve: (result: never) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The usage log in a worker thread, which starts with the first call and does not keep the process alive. Run from source, without a
 * JavaScript file for a thread to load, and in memory (`":memory:"`), it works in this thread.
 */
export class ThreadedUsageLog implements UsageLog {
  #worker: Worker | null = null;
  #here: SqliteUsageLog | null = null;
  #calls = 0;
  #isClosed = false;
  readonly #waiting = new Map<number, Waiting>();

  constructor(
    private readonly file: string,
    private readonly bounds: UsageBounds = DEFAULT_USAGE_BOUNDS,
  ) {}

  record: UsageLog["record"] = (batch, now, of) => this.#call("record", [batch, now, of]);
  summary: UsageLog["summary"] = (view) => this.#call("summary", [view]);
  misses: UsageLog["misses"] = (view) => this.#call("misses", [view]);
  prompts: UsageLog["prompts"] = (filter, before, limit) => this.#call("prompts", [filter, before, limit]);
  prompt: UsageLog["prompt"] = (key) => this.#call("prompt", [key]);
  users: UsageLog["users"] = (tenant, order, limit) => this.#call("users", [tenant, order, limit]);
  conversations: UsageLog["conversations"] = (of, order, limit) => this.#call("conversations", [of, order, limit]);
  conversation: UsageLog["conversation"] = (of) => this.#call("conversation", [of]);
  note: UsageLog["note"] = (note) => this.#call("note", [note]);
  replaceMark: UsageLog["replaceMark"] = (name, text) => this.#call("replaceMark", [name, text]);

  // A process that never recorded anything need not make the file.
  deleteUser: UsageLog["deleteUser"] = async (tenant, userId, now) => {
    if (this.#isMade) await this.#call("deleteUser", [tenant, userId, now]);
  };
  exportUser: UsageLog["exportUser"] = async (tenant, userId) =>
    this.#isMade ? await this.#call("exportUser", [tenant, userId]) : [];

  async close(): Promise<void> {
    if (this.#isClosed) return;
    if (this.#worker !== null || this.#here !== null) await this.#call("close", []).catch(() => {});
    this.#isClosed = true;
    await this.#worker?.terminate();
  }

  get #isMade(): boolean {
    return this.#worker !== null || this.#here !== null || existsSync(this.file);
  }

  #call<T>(method: keyof SqliteUsageLog, args: readonly unknown[]): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error("the usage log is closed"));
    if (this.file === ":memory:" || import.meta.filename.endsWith(".ts")) return this.#callHere(method, args);
    const worker = this.#started();
    const id = this.#calls++;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, method, args } satisfies UsageCall);
    });
  }

  async #callHere<T>(method: keyof SqliteUsageLog, args: readonly unknown[]): Promise<T> {
    try {
      this.#here ??= new SqliteUsageLog(openUsageDatabase(this.file), this.bounds);
      const work = this.#here[method] as (...args: readonly unknown[]) => T;
      return Reflect.apply(work, this.#here, [...args]);
    } catch (error) {
      const fault = faultOf(error);
      throw fault === null ? error : new StoreUnavailableError(fault, { cause: error });
    }
  }

  #started(): Worker {
    if (this.#worker !== null) return this.#worker;
    const workerData = { file: this.file, bounds: this.bounds };
    const worker = new Worker(new URL("./usage-thread.js", import.meta.url), { workerData });
    worker.on("message", (outcome: UsageOutcome) => this.#settle(worker, outcome));
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

  #settle(worker: Worker, outcome: UsageOutcome): void {
    const waiting = this.#waiting.get(outcome.id);
    this.#waiting.delete(outcome.id);
    if (this.#waiting.size === 0) worker.unref();
    if ("result" in outcome) waiting?.resolve(outcome.result as never);
    else
      waiting?.reject(outcome.fault === null ? new Error(outcome.problem) : new StoreUnavailableError(outcome.fault));
  }
}
