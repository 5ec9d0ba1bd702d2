const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** What is swept. */
export interface Swept {
  dropUnused(before: number, signal: AbortSignal): Promise<unknown>;
}

/** How sweeps are set up. */
export interface Sweeping {
  /** Days after which what nobody used is dropped. */
  readonly keepDays: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called with what a sweep failed with; the next one tries again. */
  readonly onFault: (error: unknown) => void;
}

/** Drops what nobody used for so long, now and every hour, until it is told to stop. Resolves when no sweep is under way any more. */
export function startSweeps(memstem: Swept, { keepDays, now, onFault }: Sweeping): () => Promise<void> {
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let sweep: Promise<void>;
  const start = () => {
    sweep = memstem
      .dropUnused(now() - keepDays * DAY_MS, stopping.signal)
      .then(() => {}, onFault)
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
