import { LruMap } from "../text/collections.js";
import type { CacheReport } from "./cache-report.js";
import type { CachingEngine } from "./caching-engine.js";
import type { CacheHandle, CacheLookup, CachePrompt, EngineCache } from "./engine-cache.js";
import type { PredictedCache } from "./predicted-cache.js";
import type { ResidencyModel } from "./residency.js";
import type { BlockChain } from "./resident-blocks.js";

/** Each has some hundred blocks. */
const MOST_TOKENIZED = 1_024;

export interface TokenizedPrompt {
  readonly tokens: number;
  readonly chains: readonly BlockChain[];
}

/** An engine's cache as its KV events show it, exact to the block for tokenized prompts. Without events it is predicted. */
export class ObservedCache implements EngineCache {
  readonly #tokenized = new LruMap<CacheHandle, TokenizedPrompt>(MOST_TOKENIZED);

  constructor(
    private readonly engine: CachingEngine,
    readonly predicted: PredictedCache,
  ) {}

  /** Records a prompt as its engine sees it, before or after it is admitted. */
  tokenized(handle: CacheHandle, prompt: TokenizedPrompt): void {
    this.#tokenized.set(handle, prompt);
  }

  get residency(): ResidencyModel {
    return this.predicted.residency;
  }

  lookup(stream: string): CacheLookup {
    const predicted = this.predicted.lookup(stream);
    const newest = this.predicted.newestOf(stream);
    const tokenized = newest === null ? undefined : this.#tokenized.get(newest.handle);
    if (newest === null || tokenized === undefined || tokenized.tokens === 0) return predicted;
    const exact = this.engine.residentTokens(tokenized.chains);
    if (exact === null) return predicted;
    return { ...predicted, residentTokens: Math.floor((exact * newest.total) / tokenized.tokens) };
  }

  admit(prompt: CachePrompt): void {
    this.predicted.admit(prompt);
  }

  release(handle: CacheHandle): void {
    this.#tokenized.delete(handle);
    this.predicted.release(handle);
  }

  report(handle: CacheHandle, report: CacheReport | null, at: number): void {
    this.predicted.report(handle, report, at);
  }
}
