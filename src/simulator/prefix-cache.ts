/*
 * simulator/: prefix caches as engines and providers document them, without an engine.
 * In: prompts as token ids, with breakpoints where the provider has them; a clock in milliseconds.
 * Out: cached and written tokens of each prompt (`CacheOutcome`).
 * One file per cache, each passing `test/simulator/prefix-cache.suite.ts`; `simulated-cache.ts` makes one by its name.
 */

/** One prompt. Offsets count tokens from its start, ascend, and lie in 1 … `tokens.length`. */
export interface SimulatedPrompt {
  readonly tokens: readonly number[];
  /** The caller's cache breakpoints. Only caches that match at breakpoints read them. */
  readonly breakpoints?: readonly number[];
  /** Ends of content blocks (for a chat: of messages). Only a cache that looks back over blocks reads them. */
  readonly blockEnds?: readonly number[];
}

/** One prompt's cache hit and cache write, in tokens. */
export interface CacheOutcome {
  /** Tokens of the prefix that need no prefill; billed as cache reads. */
  readonly cachedTokens: number;
  /** Tokens billed as cache writes, after `cachedTokens`; null where writes are not billed. */
  readonly writtenTokens: number | null;
}

/** A prefix cache by the rules of one engine. Compares tokens, not hashes, so nothing collides. */
export interface PrefixCache {
  readonly name: string;
  /** Looks a prompt up and inserts it. `now`: milliseconds of any monotonic clock, for the TTL. */
  serve(prompt: SimulatedPrompt, now: number): CacheOutcome;
  /** Cached tokens, each shared prefix counted once. */
  readonly heldTokens: number;
  clear(): void;
}

export interface CacheLimits {
  /** Most cached tokens; absent: unbounded. */
  readonly capacityTokens?: number | undefined;
  /** TTL after the last use, in milliseconds; absent: none. */
  readonly ttlMs?: number | undefined;
}

/** A limit, infinite where it is absent. Throws a RangeError where it is not above 0. */
export function limitOf(limits: CacheLimits, name: keyof CacheLimits): number {
  const limit = limits[name] ?? Number.POSITIVE_INFINITY;
  if (!(limit > 0)) throw new RangeError(`${name} is ${limit}, not above 0`);
  return limit;
}
