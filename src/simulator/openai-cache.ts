import { ChainedBlocks } from "./chained-blocks.js";
import type { CacheOutcome, PrefixCache, SimulatedPrompt } from "./prefix-cache.js";

/** OpenAI's prompt caching guide: hits are counted in steps of 128 tokens, for prompts of at least 1,024. */
const STEP_TOKENS = 128;
const MINIMUM_TOKENS = 8 * STEP_TOKENS;

/** The minimum by the guide ("5 to 10 minutes of inactivity"), in milliseconds. */
const TTL_MS = 5 * 60_000;

/**
 * OpenAI's cache for models before GPT-5.6: automatic, on the longest prefix shared with any earlier prompt, 1,024 tokens and then
 * steps of 128; writes are free. All requests are assumed to reach the same machine, which `prompt_cache_key` aims at. The guide documents
 * neither a capacity nor a last token that is always computed, so neither is simulated.
 */
export class OpenAiCache implements PrefixCache {
  readonly name = "openai";
  readonly #steps: ChainedBlocks;

  constructor({ ttlMs = TTL_MS }: { readonly ttlMs?: number | undefined } = {}) {
    this.#steps = new ChainedBlocks(STEP_TOKENS, { ttlMs });
  }

  get heldTokens(): number {
    return this.#steps.heldTokens;
  }

  serve({ tokens }: SimulatedPrompt, now: number): CacheOutcome {
    const shared = tokens.length < MINIMUM_TOKENS ? 0 : this.#steps.take(tokens, now);
    return { cachedTokens: shared < MINIMUM_TOKENS ? 0 : shared, writtenTokens: null };
  }

  clear(): void {
    this.#steps.clear();
  }
}
