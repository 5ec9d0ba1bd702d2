import type { EventLoopUtilityFunction } from "node:perf_hooks";

/** Milliseconds after a group's end for which commits are waited for, at most. */
const GATHER_MS = 5;
/** From which share of the time since the group before the thread is taken for busy: whoever waits then keeps it from nothing. */
const BUSY = 0.75;

/**
 * Which size the next group of commits waits for. A transaction costs the server as much as several units of it, so where the thread that
 * plans is busy anyway, half of all that are under way wait for each other: while the server stores one half, the other one is planned.
 * With less to do every commit goes at once.
 */
export class Gathering {
  #wanted = 0;
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
    if (waiting >= ended || this.utilization(this.#atEnd, before).utilization < BUSY) return;
    this.#wanted = (ended + waiting) / 2;
    this.#timer = setTimeout(() => {
      this.end();
      this.over();
    }, GATHER_MS);
  }

  /** Whether so many still wait for others; where they are enough, nobody does until the next group has ended. */
  isOn(waiting: number): boolean {
    if (waiting >= this.#wanted) this.end();
    return waiting < this.#wanted;
  }

  /** Nobody waits any longer. */
  end(): void {
    this.#wanted = 0;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
