import { ChainedBlocks } from "./chained-blocks.js";
import type { CacheLimits, CacheOutcome, PrefixCache, SimulatedPrompt } from "./prefix-cache.js";

/** vLLM's default block size, in tokens. */
export const BLOCK_TOKENS = 16;

/**
 * vLLM's prefix cache: full blocks of 16 tokens, each identified by its tokens and the block before it. A prompt hits its longest cached
 * prefix of blocks, but never its last token, which is computed for its logits, and so never the block with it
 * (`vllm/v1/core/kv_cache_manager.py`, `get_computed_blocks`). Eviction is LRU; within one request, descendants before ancestors
 * (`single_type_kv_cache_manager.py`, `free`). One request at a time is simulated; its partial last block and its answer take no room. vLLM
 * itself has no TTL.
 */
export class BlockHashCache implements PrefixCache {
  readonly name = "blocks";
  readonly #blocks: ChainedBlocks;

  constructor(
    limits: CacheLimits = {},
    private readonly blockTokens = BLOCK_TOKENS,
  ) {
    this.#blocks = new ChainedBlocks(blockTokens, limits);
  }

  get heldTokens(): number {
    return this.#blocks.heldTokens;
  }

  serve({ tokens }: SimulatedPrompt, now: number): CacheOutcome {
    const reusable = Math.max(0, Math.ceil(tokens.length / this.blockTokens) - 1) * this.blockTokens;
    return { cachedTokens: Math.min(this.#blocks.take(tokens, now), reusable), writtenTokens: null };
  }

  clear(): void {
    this.#blocks.clear();
  }
}
