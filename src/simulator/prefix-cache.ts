/*
 * simulator/: prefix caches as engines and providers document them, without an engine.
 * In: prompts as token ids, with breakpoints where the provider has them; a clock in milliseconds.
 * Out: cached and written tokens of each prompt (`CacheOutcome`).
 * One file per cache, each passing `test/simulator/prefix-cache.suite.ts`; `simulated-cache.ts` makes one by its name.
 */

/** One prompt as an engine sees it. All offsets count tokens from its beginning, ascend, and lie in 1 … `tokens.length`. */
export interface SimulatedPrompt {
  readonly tokens: readonly number[];
  /** Where the caller marks a cache breakpoint: the end of a prefix to keep. Only caches that match at breakpoints read them. */
  readonly breakpoints?: readonly number[];
  /** Where a content block ends (for a chat: each message). Only a cache that looks back over blocks reads them. */
  readonly blockEnds?: readonly number[];
}

/** What one prompt found and left, in tokens. */
export interface CacheOutcome {
  /** Tokens from the beginning that need no prefill; what a provider bills as read from the cache. */
  readonly cachedTokens: number;
  /** Tokens billed as written to the cache, behind `cachedTokens`; null where writes are not billed. */
  readonly writtenTokens: number | null;
}

/** A prefix cache by the rules of one engine. Holds prompts' tokens, not their hashes, so nothing collides. */
export interface PrefixCache {
  readonly name: string;
  /** Looks a prompt up and takes it in. `now`: milliseconds of any clock, never less than in the call before; only a TTL reads it. */
  serve(prompt: SimulatedPrompt, now: number): CacheOutcome;
  /** Tokens held after the last prompt, each shared prefix counted once. */
  readonly heldTokens: number;
  clear(): void;
}

export interface CacheLimits {
  /** Tokens held at most; absent: no end. */
  readonly capacityTokens?: number | undefined;
  /** Milliseconds after its last use at which something is forgotten; absent: never. */
  readonly ttlMs?: number | undefined;
}

/** A limit that may be absent, which is one that is never reached. */
export function limitOf(limits: CacheLimits, name: keyof CacheLimits): number {
  const limit = limits[name] ?? Number.POSITIVE_INFINITY;
  if (!(limit > 0)) throw new RangeError(`${name} is ${limit}, not above 0`);
  return limit;
}
