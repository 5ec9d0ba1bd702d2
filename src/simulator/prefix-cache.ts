/*
 * simulator/: prefix caches as engines implement them, without an engine.
 * In: prompts as token ids. Out: how many tokens of each were cached.
 * One file per cache, each passing `test/simulator/prefix-cache.suite.ts`; `simulated-cache.ts` makes one by its name.
 */

/** A prefix cache by the rules of one engine. Compares tokens, not hashes, so nothing collides. */
export interface PrefixCache {
  /** Looks a prompt up and inserts it; returns the tokens of its prefix that need no prefill. */
  serve(tokens: readonly number[]): number;
  /** Cached tokens, each shared prefix counted once. */
  readonly heldTokens: number;
}

export interface CacheLimits {
  /** Most cached tokens; absent: unbounded. */
  readonly capacityTokens?: number | undefined;
}

/** The capacity, infinite where it is absent. Throws a RangeError where it is not above 0. */
export function capacityOf({ capacityTokens = Number.POSITIVE_INFINITY }: CacheLimits): number {
  if (!(capacityTokens > 0)) throw new RangeError(`capacityTokens is ${capacityTokens}, not above 0`);
  return capacityTokens;
}
