import { expect, vi } from "vitest";
import type { After } from "../../../src/engines/upstream/upstream.js";

/** Until a machine that does other things, too, must have come as far. Nothing waits so long where all is well. */
export const PATIENCE = { timeout: 30_000, interval: 2 };

/** Time-outs that no clock ends: the test says when the time is over, so what comes of it is the same on every machine. */
export class HeldTimers {
  readonly #waiting = new Set<{ readonly ms: number; readonly run: () => void }>();

  readonly after: After = (ms, run) => {
    const timer = { ms, run };
    this.#waiting.add(timer);
    return () => this.#waiting.delete(timer);
  };

  /** Times of those that wait. */
  get waiting(): number[] {
    return [...this.#waiting].map(({ ms }) => ms);
  }

  /** Resolves when `count` wait for `ms`. */
  async started(ms: number, count: number): Promise<void> {
    await vi.waitFor(() => expect(this.waiting.filter((other) => other === ms)).toHaveLength(count), PATIENCE);
  }

  /** Ends those for `ms`, as soon as there are `count`. */
  async runOut(ms: number, count: number): Promise<void> {
    await this.started(ms, count);
    for (const timer of [...this.#waiting].filter((other) => other.ms === ms)) {
      this.#waiting.delete(timer);
      timer.run();
    }
  }
}
