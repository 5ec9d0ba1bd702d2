import { Worker } from "node:worker_threads";
import { StoreUnavailableError } from "../api/store.js";
import type { ThreadAnswer, ThreadCall, ThreadTask } from "./journal-messages.js";
import type { Outcome } from "./journal-outcomes.js";

/** Megabytes of heap: a group, or a large scope, with room to collect; young ones stay small, as they are never given back. */
const HEAP = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 8, stackSizeMb: 1 };

/** What a thread is asked, without its number. */
export type Asked = ThreadCall extends infer Call
  ? Call extends { readonly id: number }
    ? Omit<Call, "id">
    : never
  : never;

interface Waiting {
  readonly resolve: (outcomes: readonly Outcome[]) => void;
  readonly reject: (error: StoreUnavailableError) => void;
}

/**
 * A thread of a journal. It starts with the first call, and does not keep the process alive while nothing is asked. Where it dies, what is
 * under way rejects as failing, though it may be stored, and the next call starts another.
 */
export class JournalWorker {
  #worker: Worker | null = null;
  #calls = 0;
  #isClosed = false;
  readonly #waiting = new Map<number, Waiting>();

  /** @param code `journal-thread.js`, as it was built */
  constructor(
    private readonly task: ThreadTask,
    private readonly code: URL,
  ) {}

  start(): Worker {
    if (this.#worker !== null) return this.#worker;
    // What this process was started with is not for its threads.
    const worker = new Worker(this.code, { workerData: this.task, resourceLimits: HEAP, execArgv: [] });
    worker.on("message", ({ id, outcomes }: ThreadAnswer) => {
      this.#take(id)?.resolve(outcomes);
    });
    let cause: Error | undefined;
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => this.#ended(worker, cause));
    worker.unref();
    this.#worker = worker;
    return worker;
  }

  async ask(asked: Asked): Promise<readonly Outcome[]> {
    if (this.#isClosed) throw new Error("the journal is closed");
    const worker = this.start();
    const call: ThreadCall = { ...asked, id: this.#calls++ };
    worker.postMessage(call);
    worker.ref();
    return new Promise((resolve, reject) => this.#waiting.set(call.id, { resolve, reject }));
  }

  /** Ends the thread after everything that it was asked. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const worker = this.#worker;
    if (worker === null) return;
    const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    worker.ref();
    const call: ThreadCall = { id: this.#calls++, ask: "close" };
    worker.postMessage(call);
    await ended;
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker?.unref();
    return waiting;
  }

  #ended(worker: Worker, cause: Error | undefined): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    const error = new StoreUnavailableError("failing", {
      cause: cause ?? new Error("the thread of the journal ended"),
    });
    for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(error);
  }
}
