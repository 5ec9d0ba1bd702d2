/* threads: calls of worker threads. Enters: calls. Leaves: the thread's answer to each, or an error if the thread ended. */

import { getPriority, setPriority } from "node:os";
import { Worker, type WorkerOptions } from "node:worker_threads";

interface Waiting<Answer> {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

/** Calls a worker thread. It starts with the first call, again after it ended, and keeps the process alive only while a call waits. */
export class WorkerCalls<Call extends { readonly id: number }, Answer extends { readonly id: number }> {
  #worker: Worker | null = null;
  #calls = 0;
  #isEnding = false;
  readonly #waiting = new Map<number, Waiting<Answer>>();

  /** @param ended makes the error of running calls when the thread ends; `cause`: what it threw, if anything */
  constructor(
    private readonly code: URL,
    private readonly options: WorkerOptions,
    private readonly ended: (cause: Error | undefined) => Error,
  ) {}

  start(): Worker {
    if (this.#worker !== null) return this.#worker;
    const worker = new Worker(this.code, this.options);
    worker.on("message", (answer: Answer) => this.#take(answer.id)?.resolve(answer));
    let cause: Error | undefined;
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => {
      this.#worker = null;
      this.#isEnding = false;
      const error = this.ended(cause);
      for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(error);
    });
    worker.unref();
    this.#worker = worker;
    return worker;
  }

  async ask(asked: WithoutId<Call>): Promise<Answer> {
    const worker = this.start();
    const id = this.#post(worker, asked);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** Sends the last call, after every earlier one, and waits until the thread has ended. */
  async end(asked: WithoutId<Call>): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    this.#isEnding = true;
    this.#post(worker, asked);
    await ended;
  }

  /** Stops the thread. Calls without an answer reject. */
  async terminate(): Promise<void> {
    if (this.#worker === null) return;
    this.#isEnding = true;
    await this.#worker.terminate();
  }

  #post(worker: Worker, asked: WithoutId<Call>): number {
    const id = this.#calls++;
    worker.postMessage({ ...asked, id });
    worker.ref();
    return id;
  }

  #take(id: number): Waiting<Answer> | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    // While the thread's end is awaited, only the thread keeps the process alive.
    if (this.#waiting.size === 0 && !this.#isEnding) this.#worker?.unref();
    return waiting;
  }
}

export type WithoutId<Call> = Call extends unknown ? Omit<Call, "id"> : never;

/** If both want a core, a background thread gets a tenth of a compose's share (sched(7)). */
const NICE = 10;

/** Lowers the calling thread's priority. Only on Linux is a nice value a thread's own (setpriority(2)); elsewhere this does nothing. */
export function stayInBackground(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.max(getPriority(0), NICE));
  } catch {
    // A sandbox may forbid it; the result is the same.
  }
}
