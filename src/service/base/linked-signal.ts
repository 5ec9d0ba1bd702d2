/** A signal that aborts with any of several, and by itself. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Aborts this one alone. */
  abort(): void;
  /** Lets go of the others; to be called once nobody needs the signal. */
  release(): void;
}

/**
 * Like `AbortSignal.any`, but lets go: that one keeps, in Node 20, something of every signal it made for as long as the longest-lived
 * of the given ones lives, and costs many times as much.
 */
export function linkedSignal(...signals: readonly AbortSignal[]): LinkedSignal {
  const own = new AbortController();
  const follow = ({ target }: Event) => own.abort(target instanceof AbortSignal ? target.reason : undefined);
  for (const signal of signals) {
    if (signal.aborted) own.abort(signal.reason);
    signal.addEventListener("abort", follow, { once: true });
  }
  const release = () => {
    for (const signal of signals) signal.removeEventListener("abort", follow);
  };
  return { signal: own.signal, abort: () => own.abort(), release };
}
