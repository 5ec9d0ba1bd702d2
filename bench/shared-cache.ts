import type { PrefixCache } from "../src/core/cache/simulated-cache.js";

/** Everyone's first, then everyone's second, and so on; who has no more is passed over. */
export function* inTurn<T>(users: readonly Iterable<T>[]): Generator<T, void, undefined> {
  let asking = users.map((user) => user[Symbol.iterator]());
  while (asking.length > 0) {
    const still: Iterator<T>[] = [];
    for (const user of asking) {
      const next = user.next();
      if (next.done) continue;
      yield next.value;
      still.push(user);
    }
    asking = still;
  }
}

/** Share of all prompts' tokens that a cache held when they came, from 0 to 1. Fills the cache. */
export function cachedShare(prompts: Iterable<{ readonly tokens: readonly number[] }>, cache: PrefixCache): number {
  let cached = 0;
  let total = 0;
  for (const prompt of prompts) {
    cached += cache.serve(prompt.tokens);
    total += prompt.tokens.length;
  }
  return total === 0 ? 0 : cached / total;
}

/** Tokens that a cache without end holds when all prompts were served: each distinct prefix once. Pass it such a cache, empty. */
export function distinctTokens(
  prompts: Iterable<{ readonly tokens: readonly number[] }>,
  endless: PrefixCache,
): number {
  cachedShare(prompts, endless);
  return endless.heldTokens;
}
