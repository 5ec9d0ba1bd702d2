import { StoreUnavailableError } from "../api/store.js";
import { STORE_THREAD, type WithoutId, WorkerCalls } from "../threads/worker-calls.js";
import type { ThreadAnswer, ThreadCall, ThreadTask } from "./journal-messages.js";
import type { Outcome } from "./journal-outcomes.js";

/** A thread of a journal. Where it dies, what is under way rejects as failing, though it may be stored. */
export class JournalWorker {
  readonly #calls: WorkerCalls<ThreadCall, ThreadAnswer>;
  #isClosed = false;

  /** @param code `journal-thread.js`, as it was built */
  constructor(task: ThreadTask, code: URL) {
    this.#calls = new WorkerCalls(code, { ...STORE_THREAD, workerData: task }, (cause) => {
      return new StoreUnavailableError("failing", { cause: cause ?? new Error("the thread of the journal ended") });
    });
  }

  start(): void {
    this.#calls.start();
  }

  async ask(asked: WithoutId<ThreadCall>): Promise<readonly Outcome[]> {
    if (this.#isClosed) throw new Error("the journal is closed");
    return (await this.#calls.ask(asked)).outcomes;
  }

  /** Ends the thread after everything that it was asked. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#calls.end({ ask: "close" });
  }
}
