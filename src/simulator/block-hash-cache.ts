import { ChainedBlocks } from "./chained-blocks.js";
import type { CacheLimits, CacheOutcome, PrefixCache, SimulatedPrompt } from "./prefix-cache.js";

/** vLLM's default block size, in tokens. */
export const BLOCK_TOKENS = 16;

/**
 * A prefix cache as vLLM keeps it: full blocks of 16 tokens, each known by its own tokens and the block before it. A prompt hits the
 * longest run of blocks from its beginning that are held, but never all of its tokens: the last one is computed for its logits, and as
 * hits end at block ends the whole block that it is in (`vllm/v1/core/kv_cache_manager.py`, `get_computed_blocks`). Least recently used
 * blocks go first, a request's last block before its first (`single_type_kv_cache_manager.py`, `free`). Simulated is one request at a
 * time; its unfinished last block and its answer take no room here. vLLM itself forgets nothing by time.
 */
export class BlockHashCache implements PrefixCache {
  readonly name = "blocks";
  readonly #blocks: ChainedBlocks;

  constructor(limits: CacheLimits = {}) {
    this.#blocks = new ChainedBlocks(BLOCK_TOKENS, limits);
  }

  get heldTokens(): number {
    return this.#blocks.heldTokens;
  }

  serve({ tokens }: SimulatedPrompt, now: number): CacheOutcome {
    const reusable = Math.max(0, Math.ceil(tokens.length / BLOCK_TOKENS) - 1) * BLOCK_TOKENS;
    return { cachedTokens: Math.min(this.#blocks.take(tokens, now), reusable), writtenTokens: null };
  }

  clear(): void {
    this.#blocks.clear();
  }
}
