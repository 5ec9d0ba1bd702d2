import type { EventLoopUtilityFunction } from "node:perf_hooks";

/** Milliseconds after a group's end for which commits are waited for, at most. */
const GATHER_MS = 5;
/** From which share of the time since the group before the thread is taken for busy: whoever waits then keeps it from nothing. */
const BUSY = 0.75;

/**
 * When a group of those that wait starts: `later`, as others are waited for; `now`; or at the end of this `turn` of the event loop, with all
 * that it brings.
 */
export type GroupStart = "later" | "now" | "turn";

/**
 * Which size the next group of commits waits for. A transaction costs the server as much as several units of it, so where the thread that
 * plans is busy anyway, half of all that are under way wait for each other: while the server stores one half, the other one is planned. With
 * less to do every commit goes with the turn that it came in.
 *
 * On a busy thread a turn of the event loop plans whatever the connections sent meanwhile. A group that waited for its end would have all of
 * it, and leave the thread nothing to plan until it is stored; then all are answered, come back together, and share the next group again.
 * So there a group starts as soon as it has its size.
 */
export class Gathering {
  #wanted = 0;
  #isBusy = false;
  #timer: NodeJS.Timeout | null = null;
  #atEnd;

  /**
   * @param over called where fewer came than were waited for
   * @param utilization how busy the thread was
   */
  constructor(
    private readonly over: () => void,
    private readonly utilization: EventLoopUtilityFunction = performance.eventLoopUtilization,
  ) {
    this.#atEnd = utilization();
  }

  /** A group ended. Those who were in it may come again; `waiting` came meanwhile. */
  begin(ended: number, waiting: number): void {
    this.end();
    const before = this.#atEnd;
    this.#atEnd = this.utilization();
    this.#isBusy = this.utilization(this.#atEnd, before).utilization >= BUSY;
    if (waiting >= ended || !this.#isBusy) return;
    this.#wanted = (ended + waiting) / 2;
    this.#timer = setTimeout(() => {
      this.end();
      this.over();
    }, GATHER_MS);
  }

  /** When a group of so many starts. Where they are enough, nobody waits for others until it has ended. */
  startOf(waiting: number): GroupStart {
    if (waiting < this.#wanted) return "later";
    this.end();
    return this.#isBusy ? "now" : "turn";
  }

  /** Nobody waits any longer. */
  end(): void {
    this.#wanted = 0;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
