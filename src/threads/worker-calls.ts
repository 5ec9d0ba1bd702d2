/*
 * threads/: calls of worker threads.
 * In: what a thread is asked. Out: its answers, each to who asked, or the error for a thread that ended.
 */

import { getPriority, setPriority } from "node:os";
import { type TransferListItem, Worker, type WorkerOptions } from "node:worker_threads";

interface Waiting<Answer> {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Calls of a worker thread, which answers each with its number. It starts with the first call, and does not keep the process alive while
 * nothing is asked. Where it ends, what is under way rejects, and the next call starts another.
 */
export class WorkerCalls<Call extends { readonly id: number }, Answer extends { readonly id: number }> {
  #worker: Worker | null = null;
  #calls = 0;
  #isEnding = false;
  readonly #waiting = new Map<number, Waiting<Answer>>();

  /**
   * @param code the thread's JavaScript file
   * @param ended the error for what is under way where the thread ends; `cause`: what it threw, if anything
   */
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

  async ask(asked: WithoutId<Call>, transferred: readonly TransferListItem[] = []): Promise<Answer> {
    const worker = this.start();
    const id = this.#post(worker, asked, transferred);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** Sends the thread's last call, after every earlier one, and waits until it has ended. */
  async end(asked: WithoutId<Call>): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    this.#isEnding = true;
    this.#post(worker, asked, []);
    await ended;
  }

  /** Stops the thread; calls that it has not answered reject. */
  async terminate(): Promise<void> {
    if (this.#worker === null) return;
    this.#isEnding = true;
    await this.#worker.terminate();
  }

  #post(worker: Worker, asked: WithoutId<Call>, transferred: readonly TransferListItem[]): number {
    const id = this.#calls++;
    worker.postMessage({ ...asked, id }, transferred);
    worker.ref();
    return id;
  }

  #take(id: number): Waiting<Answer> | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    // Whoever waits for the thread's end is answered by nothing else: without it the process would end in the middle.
    if (this.#waiting.size === 0 && !this.#isEnding) this.#worker?.unref();
    return waiting;
  }
}

/** What a thread is asked, without its number. */
export type WithoutId<Call> = Call extends unknown ? Omit<Call, "id"> : never;

/** Where both want a core, a background thread gets a tenth of what a compose's gets (sched(7)). */
const NICE = 10;

/**
 * Gives the calling thread a lower priority than those that composes wait for. On Linux a nice value is a thread's own (setpriority(2)); elsewhere it is the
 * whole process's, so there nothing changes.
 */
export function stayInBackground(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.max(getPriority(0), NICE));
  } catch {
    // A sandbox may forbid it; the work is the same.
  }
}
