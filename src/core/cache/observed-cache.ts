import { LruMap } from "../text/collections.js";
import type { BlockChain } from "./caching-engine.js";
import type { CacheHandle, CacheLookup } from "./engine-cache.js";
import { PredictedCache } from "./predicted-cache.js";

/** Each has some hundred blocks. */
const MOST_TOKENIZED = 1_024;

export interface TokenizedPrompt {
  readonly tokens: number;
  readonly chains: readonly BlockChain[];
}

/** An engine's cache as its KV events show it, exact to the block for tokenized prompts. Without events it is predicted. */
export class ObservedCache extends PredictedCache {
  readonly #tokenized = new LruMap<CacheHandle, TokenizedPrompt>(MOST_TOKENIZED);

  /** Records a prompt as its engine sees it, before or after it is admitted. */
  tokenized(handle: CacheHandle, prompt: TokenizedPrompt): void {
    this.#tokenized.set(handle, prompt);
  }

  override lookup(stream: string): CacheLookup {
    const predicted = super.lookup(stream);
    const newest = this.newestOf(stream);
    const tokenized = newest === null ? undefined : this.#tokenized.get(newest.handle);
    if (newest === null || tokenized === undefined || tokenized.tokens === 0) return predicted;
    const exact = this.engine.residentTokens(tokenized.chains);
    if (exact === null) return predicted;
    return { ...predicted, residentTokens: Math.floor((exact * newest.total) / tokenized.tokens) };
  }

  override release(handle: CacheHandle): void {
    this.#tokenized.delete(handle);
    super.release(handle);
  }
}
