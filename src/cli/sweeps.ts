const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Prompts' figures expire after this many days, and beyond this many rows. */
const FIGURES_DAYS = 31;
const MOST_FIGURES = 200_000;

export interface Swept {
  /** Removes data that was last used before a time. */
  dropUnused(before: number, signal: AbortSignal): Promise<unknown>;
  /** Removes figures from before a time, and the oldest beyond `most`. */
  dropFigures(before: number, most: number): Promise<void>;
}

export interface SweepOptions {
  /** Undefined: never. */
  readonly keepDays: number | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called with a sweep's error; the next sweep retries. */
  readonly onFault: (error: unknown) => void;
}

/** Removes expired data, now and every hour. The returned function stops it, and resolves when no sweep is running. */
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
      // A failing log must not stop the sweeps.
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
