import { PerformanceObserver } from "node:perf_hooks";

/** Milliseconds between two samples. */
const EVERY_MS = 20;
/** Shorter delays, in milliseconds, are not counted. */
const LEAST_MS = 20;

interface Pause {
  readonly from: number;
  readonly ms: number;
}

/** A delayed sample. */
interface Late {
  readonly from: number;
  readonly to: number;
  /** Delay in milliseconds. */
  readonly lateMs: number;
  /** CPU time of the process in between, in milliseconds. */
  readonly usedMs: number;
}

/**
 * How long synchronous work blocked this process's event loop, measured by the delay of a timer. Two other causes of delay are subtracted:
 * CPU time given to other processes, seen by the process's own CPU time, and garbage collection, whose pauses V8 reports.
 */
export class EventLoopBlocks {
  readonly #timer: NodeJS.Timeout;
  readonly #observer: PerformanceObserver;
  #pauses: Pause[] = [];
  #late: Late | null = null;
  #last = performance.now();
  #cpu = process.cpuUsage();

  /**
   * @param onBlock called with each block, in milliseconds
   */
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
    // One call: it takes longer than all else here.
    const cpu = process.cpuUsage();
    const usedMs = (cpu.user - this.#cpu.user + cpu.system - this.#cpu.system) / 1_000;
    const late = now - this.#last - EVERY_MS;
    // V8 reports a pause only after the tick that it delayed.
    this.#settle();
    if (late >= LEAST_MS) this.#late = { from: this.#last, to: now, lateMs: late, usedMs };
    else this.#pauses = [];
    this.#last = now;
    this.#cpu = cpu;
  };

  #settle(): void {
    if (this.#late === null) return;
    const { from, to, lateMs, usedMs } = this.#late;
    this.#late = null;
    const collecting = this.#pauses.reduce((sum, pause) => {
      return sum + Math.max(0, Math.min(to, pause.from + pause.ms) - Math.max(from, pause.from));
    }, 0);
    this.#pauses = this.#pauses.filter((pause) => pause.from > to);
    // Other processes take CPU time from garbage collection and from our work in proportion.
    const own = Math.min(lateMs, usedMs) * Math.max(0, 1 - collecting / lateMs);
    if (own >= LEAST_MS) this.onBlock(own);
  }
}
