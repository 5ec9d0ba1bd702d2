import { LruMap } from "../core/index.js";
import { type CacheLimits, capacityOf, type PrefixCache } from "./prefix-cache.js";

/** vLLM's default block size, in tokens. */
export const BLOCK_TOKENS = 16;

interface Block {
  readonly id: number;
  readonly key: string;
}

/**
 * vLLM's prefix cache: full blocks of 16 tokens, each identified by its tokens and the block before it. A prompt hits its longest cached
 * prefix of blocks, but never its last token, which is computed for its logits, and so never the block with it
 * (`vllm/v1/core/kv_cache_manager.py`, `get_computed_blocks`). Eviction is LRU; within one request, descendants before ancestors
 * (`single_type_kv_cache_manager.py`, `free`), so that no block stays without those before it. One request at a time is simulated; its
 * partial last block and its answer take no room.
 */
export class BlockHashCache implements PrefixCache {
  readonly #blocks = new LruMap<string, Block>();
  readonly #capacity: number;
  /** 0 is the root. Ids are not reused. */
  #lastId = 0;

  constructor(
    limits: CacheLimits = {},
    private readonly blockTokens = BLOCK_TOKENS,
  ) {
    this.#capacity = Math.floor(capacityOf(limits) / blockTokens);
  }

  get heldTokens(): number {
    return this.#blocks.size * this.blockTokens;
  }

  /** Never evicts a block of this prompt: of one larger than the capacity, a prefix is kept. */
  serve(tokens: readonly number[]): number {
    const full = Math.floor(tokens.length / this.blockTokens);
    const path: Block[] = [];
    while (path.length < full) {
      const block = this.#blocks.peek(this.#keyBehind(path, tokens));
      if (block === undefined) break;
      path.push(block);
    }
    const found = path.length;
    this.#use(path);
    while (path.length < full && this.#makeRoom(path[Math.max(0, found - 1)])) path.push(this.#add(path, tokens));
    this.#use(path);
    const reusable = Math.max(0, Math.ceil(tokens.length / this.blockTokens) - 1);
    return Math.min(found, reusable) * this.blockTokens;
  }

  #add(path: readonly Block[], tokens: readonly number[]): Block {
    const key = this.#keyBehind(path, tokens);
    const block: Block = { id: ++this.#lastId, key };
    this.#blocks.set(key, block);
    return block;
  }

  #keyBehind(path: readonly Block[], tokens: readonly number[]): string {
    const from = path.length * this.blockTokens;
    return `${path.at(-1)?.id ?? 0}:${tokens.slice(from, from + this.blockTokens).join(",")}`;
  }

  /** Last block first, so that it is evicted first. */
  #use(path: readonly Block[]): void {
    for (const { key } of path.toReversed()) this.#blocks.get(key);
  }

  /** Makes room for one block; false where only blocks in use are left, of which `firstInUse` is the least recently used. */
  #makeRoom(firstInUse: Block | undefined): boolean {
    if (this.#blocks.size < this.#capacity) return true;
    const { oldest } = this.#blocks;
    if (oldest === undefined || oldest === firstInUse?.key) return false;
    this.#blocks.delete(oldest);
    return true;
  }
}
