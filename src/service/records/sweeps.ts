const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** What is swept: expires what was not used since `before` (milliseconds since the epoch). */
export interface Swept {
  dropUnused(before: number, signal: AbortSignal): Promise<unknown>;
}

/** Options of the sweeps. */
export interface SweepOptions {
  /** Days after which unused data expires. */
  readonly keepDays: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called with a sweep's error; the next sweep retries. */
  readonly onFault: (error: unknown) => void;
}

/** Expires unused data now and every hour. The function returned stops it, and resolves when no sweep runs any more. */
export function startSweeps(memstem: Swept, { keepDays, now, onFault }: SweepOptions): () => Promise<void> {
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
