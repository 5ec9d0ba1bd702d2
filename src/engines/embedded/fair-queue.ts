import { QueueFullError } from "./embedded-engine-error.js";

/** How many may work at once, and how many may wait. */
export interface FairQueueLimits {
  readonly turns: number;
  readonly waiting: number;
  readonly waitingPerCaller: number;
}

interface Waiting {
  start(): void;
}

/**
 * Turns for a fixed number of workers. Callers take turns: each caller's requests are served in their order, and a caller with a hundred
 * of them waits for one of each other caller's before its next.
 */
export class FairQueue {
  /** Callers that wait, the next one first. */
  readonly #waiting = new Map<string, Waiting[]>();
  #count = 0;
  #free: number;

  constructor(readonly limits: FairQueueLimits) {
    this.#free = limits.turns;
  }

  /** Requests that wait. */
  get length(): number {
    return this.#count;
  }

  /**
   * Resolves when it is the caller's turn, to a function that ends it; calling that again does nothing. Rejects with
   * {@link QueueFullError} where too many wait, and with the signal's reason when it is aborted while it waits.
   */
  async turn(caller: string, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return this.#ending();
    }
    const own = this.#waiting.get(caller) ?? [];
    if (own.length >= this.limits.waitingPerCaller) throw new QueueFullError(own.length, "caller");
    if (this.#count >= this.limits.waiting) throw new QueueFullError(this.#count, "all");
    return await new Promise((resolve, reject) => {
      const waiting: Waiting = {
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
    // To the back of the round, if it has more.
    this.#waiting.delete(caller);
    if (others.length > 0) this.#waiting.set(caller, others);
    this.#count--;
    waiting?.start();
  }

  #remove(caller: string, waiting: Waiting): void {
    const own = this.#waiting.get(caller)?.filter((other) => other !== waiting) ?? [];
    if (own.length > 0) this.#waiting.set(caller, own);
    else this.#waiting.delete(caller);
    this.#count--;
  }
}
