const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Days after which figures of prompts go, and how many there are at most. */
const FIGURES_DAYS = 31;
const MOST_FIGURES = 200_000;

/** What is swept. Times are milliseconds since the epoch. */
export interface Swept {
  /** Removes what was not used since a time. */
  dropUnused(before: number, signal: AbortSignal): Promise<unknown>;
  /** Removes figures of prompts from before a time, and the oldest past `most`. */
  dropFigures(before: number, most: number): Promise<void>;
}

/** Options of the sweeps. */
export interface SweepOptions {
  /** Days after which unused data expires; undefined: never. */
  readonly keepDays: number | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called with a sweep's error; the next sweep retries. */
  readonly onFault: (error: unknown) => void;
}

/** Removes what is too old, now and every hour. The function returned stops it, and resolves when no sweep runs any more. */
export function startSweeps(memprefix: Swept, { keepDays, now, onFault }: SweepOptions): () => Promise<void> {
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let sweep = Promise.resolve();
  const sweepOnce = async () => {
    const figuresDays = Math.min(FIGURES_DAYS, keepDays ?? FIGURES_DAYS);
    await memprefix.dropFigures(now() - figuresDays * DAY_MS, MOST_FIGURES);
    if (keepDays !== undefined) await memprefix.dropUnused(now() - keepDays * DAY_MS, stopping.signal);
  };
  const start = () => {
    sweep = sweepOnce()
      .catch(onFault)
      // A log that fails stops no sweep.
      .catch(() => {})
      .then(() => {
        if (!stopping.signal.aborted) timer = setTimeout(start, HOUR_MS).unref();
      });
  };
  start();
  return async () => {
    stopping.abort();
    clearTimeout(timer);
    await sweep;
  };
}
