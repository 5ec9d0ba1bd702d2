import { type MemorySource, MemorySourceError, wrappedSource } from "./memory-source.js";

/** How long a source may take, in milliseconds. */
export interface DeadlineLimits {
  /** A search, or a look at memories found before: the prompt waits for it. */
  readonly searchMs: number;
  /** Adding, deleting and listing, where nobody waits for a first token: usually larger. One limit a call, however many memories it adds. */
  readonly writeMs: number;
}

/** A longer delay overflows the timer, which then fires at once. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

/**
 * The same source, with a time-out for every call: it rejects with {@link MemorySourceError} `timeout` after its time, and with `aborted`
 * when the caller's signal aborts, even if the source ignores signals. The source's own signal is aborted as well; a late answer is
 * dropped. A write that timed out may have happened. `close` has no limit. Throws a `RangeError` for limits that are not valid delays.
 */
export function withDeadline(source: MemorySource, limits: DeadlineLimits): MemorySource {
  for (const [name, ms] of Object.entries(limits)) {
    if (!(ms > 0 && ms <= LONGEST_DELAY_MS))
      throw new RangeError(`${name} must be over 0 and at most ${LONGEST_DELAY_MS}`);
  }
  const { searchMs, writeMs } = limits;
  return wrappedSource(source, ({ name }, signal, make) =>
    within(source.name, name === "search" || name === "current" ? searchMs : writeMs, signal, make),
  );
}

async function within<T>(
  name: string,
  afterMs: number,
  outer: AbortSignal,
  call: (inner: AbortSignal) => Promise<T>,
): Promise<T> {
  if (outer.aborted) throw new MemorySourceError(name, { kind: "aborted" });
  const inner = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let abandon: (() => void) | undefined;
  const end = new Promise<never>((_, reject) => {
    const stop = (error: MemorySourceError) => {
      reject(error);
      inner.abort(error);
    };
    abandon = () => stop(new MemorySourceError(name, { kind: "aborted" }));
    outer.addEventListener("abort", abandon, { once: true });
    timer = setTimeout(() => stop(new MemorySourceError(name, { kind: "timeout", afterMs })), afterMs);
  });
  try {
    // `race` listens to both, so a call that fails after the time-out is no unhandled rejection.
    return await Promise.race([call(inner.signal), end]);
  } finally {
    clearTimeout(timer);
    if (abandon !== undefined) outer.removeEventListener("abort", abandon);
  }
}
