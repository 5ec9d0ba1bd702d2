import type { PrefixCache } from "../src/core/cache/simulated-cache.js";
import { sharedTokens } from "../test/core/cache/simulated-prompts.js";

/**
 * A cache of the prompts that were served last, whole, so many of them; token-exact. A prompt that continues one takes its place, as a
 * prompt with its answer does. LRU, as nothing but serving uses a prompt.
 */
export class LastPrompts implements PrefixCache {
  /** Oldest first. */
  #held: readonly (readonly number[])[] = [];

  constructor(private readonly prompts: number) {}

  get heldTokens(): number {
    return this.#held.reduce((sum, tokens) => sum + tokens.length, 0);
  }

  serve(tokens: readonly number[]): number {
    const shared = this.#held.map((held) => sharedTokens(held, tokens));
    const others = this.#held.filter((held, at) => shared[at] !== held.length);
    this.#held = [...others, tokens].slice(-this.prompts);
    return Math.min(Math.max(0, ...shared), tokens.length - 1);
  }
}
