import { PerformanceObserver } from "node:perf_hooks";

/** Milliseconds between two looks. */
const EVERY_MS = 20;
/** What comes later than it should by less than this is nothing to speak of. */
const LEAST_MS = 20;

interface Pause {
  readonly from: number;
  readonly ms: number;
}

/** A time in which a look was due, and came late. */
interface Late {
  readonly from: number;
  readonly to: number;
  /** Milliseconds by which it came late. */
  readonly lateMs: number;
  /** Milliseconds of processor time that the process used meanwhile. */
  readonly usedMs: number;
}

/**
 * For how long this process' event loop was kept from everything else by what it executed. A timer that comes late shows it. Two things make
 * one late that are none of that: a machine that gives its processors to others, of which the process' own processor time says nothing; and
 * the collection of garbage, of which V8 says when it was. Neither is counted here; V8's pauses have metrics of their own.
 */
export class EventLoopBlocks {
  readonly #timer: NodeJS.Timeout;
  readonly #observer: PerformanceObserver;
  #pauses: Pause[] = [];
  #late: Late | null = null;
  #last = performance.now();
  #cpu = process.cpuUsage();

  /** @param onBlock is told of each, in milliseconds */
  constructor(private readonly onBlock: (ms: number) => void) {
    this.#observer = new PerformanceObserver((list) => {
      for (const { startTime: from, duration: ms } of list.getEntries()) this.#pauses.push({ from, ms });
    });
    this.#observer.observe({ entryTypes: ["gc"] });
    this.#timer = setInterval(this.#look, EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#observer.disconnect();
  }

  readonly #look = (): void => {
    const now = performance.now();
    const used = process.cpuUsage(this.#cpu);
    const late = now - this.#last - EVERY_MS;
    // What V8 says of its pauses comes behind what they held up.
    this.#settle();
    if (late >= LEAST_MS)
      this.#late = { from: this.#last, to: now, lateMs: late, usedMs: (used.user + used.system) / 1_000 };
    else this.#pauses = [];
    this.#last = now;
    this.#cpu = process.cpuUsage();
  };

  #settle(): void {
    if (this.#late === null) return;
    const { from, to, lateMs, usedMs } = this.#late;
    this.#late = null;
    const collecting = this.#pauses.reduce((sum, pause) => {
      return sum + Math.max(0, Math.min(to, pause.from + pause.ms) - Math.max(from, pause.from));
    }, 0);
    this.#pauses = this.#pauses.filter((pause) => pause.from > to);
    // Whoever else has the processors takes them from both alike.
    const own = Math.min(lateMs, usedMs) * Math.max(0, 1 - collecting / lateMs);
    if (own >= LEAST_MS) this.onBlock(own);
  }
}
