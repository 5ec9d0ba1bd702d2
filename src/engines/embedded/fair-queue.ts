import { QueueFullError } from "./generation.js";

/** Requests that run at once, and requests that may wait. */
export interface FairQueueLimits {
  readonly running: number;
  readonly waiting: number;
  readonly waitingPerCaller: number;
}

interface WaitingRequest {
  start(): void;
}

/**
 * Round-robin over callers for a fixed number of workers: each caller's requests start in their order, and between two of one caller's
 * every other waiting caller starts one.
 */
export class FairQueue {
  /** Waiting requests by caller, the next caller first. */
  readonly #waiting = new Map<string, WaitingRequest[]>();
  #count = 0;
  #free: number;

  constructor(readonly limits: FairQueueLimits) {
    this.#free = limits.running;
  }

  /** Requests that wait. */
  get length(): number {
    return this.#count;
  }

  /**
   * Resolves when the request may run, to a function that says that it has ended; a second call of that does nothing. Rejects with
   * {@link QueueFullError} where too many wait, and with the signal's reason where it is aborted while it waits.
   */
  async enter(caller: string, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return this.#ending();
    }
    const own = this.#waiting.get(caller) ?? [];
    if (own.length >= this.limits.waitingPerCaller) throw new QueueFullError(own.length, "caller");
    if (this.#count >= this.limits.waiting) throw new QueueFullError(this.#count, "all");
    return await new Promise((resolve, reject) => {
      const waiting: WaitingRequest = {
        start: () => {
          signal?.removeEventListener("abort", abort);
          resolve(this.#ending());
        },
      };
      const abort = () => {
        this.#remove(caller, waiting);
        reject(signal?.reason);
      };
      own.push(waiting);
      this.#waiting.set(caller, own);
      this.#count++;
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  #ending(): () => void {
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#next();
    };
  }

  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#free++;
      return;
    }
    const [caller, own] = first;
    const [waiting, ...others] = own;
    // To the back, where it has more.
    this.#waiting.delete(caller);
    if (others.length > 0) this.#waiting.set(caller, others);
    this.#count--;
    waiting?.start();
  }

  #remove(caller: string, waiting: WaitingRequest): void {
    const own = this.#waiting.get(caller)?.filter((other) => other !== waiting) ?? [];
    if (own.length > 0) this.#waiting.set(caller, own);
    else this.#waiting.delete(caller);
    this.#count--;
  }
}
