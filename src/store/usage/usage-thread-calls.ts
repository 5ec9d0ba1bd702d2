import { parentPort } from "node:worker_threads";
import { type StoreFault, StoreUnavailableError } from "../api/store.js";
import type { UsageLog } from "../api/usage-log.js";
import { stayInBackground } from "../threads/background-thread.js";
import { STORE_THREAD, WorkerCalls } from "../threads/worker-calls.js";

/** A call of a usage log's method. */
interface UsageCall {
  readonly id: number;
  readonly method: keyof UsageLog;
  readonly args: readonly unknown[];
}

/** Its result, or why there is none. */
type UsageOutcome = { readonly id: number } & (
  | { readonly result: unknown }
  | { readonly problem: string; readonly fault: StoreFault | null }
);

/** A usage log whose methods run in a worker thread; run where there is none for it, in this one. */
export abstract class UsageLogOfThread implements UsageLog {
  readonly #calls: WorkerCalls<UsageCall, UsageOutcome>;
  #isClosed = false;

  /** @param code calls {@link answerUsageCalls} */
  protected constructor(code: URL, workerData: object) {
    const ended = (cause: Error | undefined) => cause ?? new Error("the thread of the usage log ended");
    this.#calls = new WorkerCalls(code, { ...STORE_THREAD, workerData }, ended);
  }

  record: UsageLog["record"] = (batch, now) => this.call("record", [batch, now]);
  changes: UsageLog["changes"] = (since, followed) => this.call("changes", [since, followed]);
  summary: UsageLog["summary"] = (view) => this.call("summary", [view]);
  misses: UsageLog["misses"] = (view) => this.call("misses", [view]);
  prompts: UsageLog["prompts"] = (filter, before, limit) => this.call("prompts", [filter, before, limit]);
  prompt: UsageLog["prompt"] = (key) => this.call("prompt", [key]);
  users: UsageLog["users"] = (tenant, order, limit) => this.call("users", [tenant, order, limit]);
  conversations: UsageLog["conversations"] = (of, order, limit) => this.call("conversations", [of, order, limit]);
  conversation: UsageLog["conversation"] = (of) => this.call("conversation", [of]);
  note: UsageLog["note"] = (note) => this.call("note", [note]);
  replaceMark: UsageLog["replaceMark"] = (name, text) => this.call("replaceMark", [name, text]);
  claimAlert: UsageLog["claimAlert"] = (judged) => this.call("claimAlert", [judged]);
  settleAlert: UsageLog["settleAlert"] = (rule, claim) => this.call("settleAlert", [rule, claim]);
  deleteUser: UsageLog["deleteUser"] = (tenant, userId, now) => this.call("deleteUser", [tenant, userId, now]);
  exportUser: UsageLog["exportUser"] = (tenant, userId) => this.call("exportUser", [tenant, userId]);

  async close(): Promise<void> {
    if (this.#isClosed) return;
    if (this.isStarted) await this.call("close", []).catch(() => {});
    this.#isClosed = true;
    await this.#calls.terminate();
  }

  /** Whether there is no thread for it, and {@link callHere} does its work. */
  protected abstract readonly isHere: boolean;

  /** Whether {@link callHere} did anything. */
  protected abstract readonly isStartedHere: boolean;

  /** A call in this thread. */
  protected abstract callHere<T>(method: keyof UsageLog, args: readonly unknown[]): Promise<T>;

  protected get isStarted(): boolean {
    return this.#calls.isStarted || this.isStartedHere;
  }

  protected async call<T>(method: keyof UsageLog, args: readonly unknown[]): Promise<T> {
    if (this.#isClosed) throw new Error("the usage log is closed");
    if (this.isHere) return this.callHere(method, args);
    const outcome = await this.#calls.ask({ method, args });
    if ("result" in outcome) return outcome.result as T;
    throw outcome.fault === null ? new Error(outcome.problem) : new StoreUnavailableError(outcome.fault);
  }
}

/** Answers the calls of a {@link UsageLogOfThread} in its thread, behind composes. `faultOf`: what an error says of the store; null: nothing. */
export function answerUsageCalls(
  work: (method: keyof UsageLog, args: readonly unknown[]) => unknown,
  faultOf: (error: unknown) => StoreFault | null,
): void {
  stayInBackground();
  parentPort?.on("message", async ({ id, method, args }: UsageCall) => {
    let outcome: UsageOutcome;
    try {
      outcome = { id, result: await work(method, args) };
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      outcome = { id, problem, fault: faultOf(error) };
    }
    parentPort?.postMessage(outcome);
  });
}
