import { PerformanceObserver } from "node:perf_hooks";
import { setTimeout } from "node:timers/promises";

/** The collections of this thread's garbage that stopped it, to take them out of what was timed meanwhile. */
export class Collections {
  readonly #stops: { readonly start: number; readonly ms: number }[] = [];
  readonly #observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) this.#stops.push({ start: startTime, ms: duration });
  });

  constructor() {
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  /** Collections are reported a while after they were. */
  async end(): Promise<void> {
    await setTimeout(10);
    this.#observer.disconnect();
  }

  /** Milliseconds of collections between two moments of `performance.now()`. Of those that had been reported by {@link Collections.end}. */
  within(from: number, to: number): number {
    return this.#stops.reduce((sum, { start, ms }) => sum + (start >= from && start < to ? ms : 0), 0);
  }
}
