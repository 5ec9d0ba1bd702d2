import { LruMap } from "../core/index.js";
import { type CacheLimits, limitOf } from "./prefix-cache.js";

interface Block {
  readonly id: number;
  readonly key: string;
  /** When it was last used, in the caller's milliseconds. */
  usedAt: number;
}

/**
 * Full blocks of prompts, each identified by its tokens and the block before it. LRU eviction; within one prompt, descendants before
 * ancestors, so that no block stays without those before it.
 */
export class ChainedBlocks {
  readonly #blocks = new LruMap<string, Block>();
  readonly #capacity: number;
  readonly #ttlMs: number;
  /** 0 is the root. Ids are not reused. */
  #lastId = 0;

  constructor(
    readonly blockTokens: number,
    limits: CacheLimits,
  ) {
    this.#capacity = Math.floor(limitOf(limits, "capacityTokens") / blockTokens);
    this.#ttlMs = limitOf(limits, "ttlMs");
  }

  get heldTokens(): number {
    return this.#blocks.size * this.blockTokens;
  }

  /**
   * Inserts a prompt's full blocks; returns the tokens of its prefix that were cached. Never evicts a block of this prompt: of one larger
   * than the capacity, a prefix is kept.
   */
  take(tokens: readonly number[], now: number): number {
    for (const { key, usedAt } of this.#blocks.values()) {
      if (usedAt > now - this.#ttlMs) break;
      this.#blocks.delete(key);
    }
    const full = Math.floor(tokens.length / this.blockTokens);
    const path: Block[] = [];
    while (path.length < full) {
      const block = this.#blocks.peek(this.#keyBehind(path, tokens));
      if (block === undefined) break;
      path.push(block);
    }
    const found = path.length;
    this.#use(path, now);
    while (path.length < full && this.#makeRoom(path[Math.max(0, found - 1)])) path.push(this.#add(path, tokens));
    this.#use(path, now);
    return found * this.blockTokens;
  }

  clear(): void {
    this.#blocks.clear();
  }

  #add(path: readonly Block[], tokens: readonly number[]): Block {
    const key = this.#keyBehind(path, tokens);
    const block: Block = { id: ++this.#lastId, key, usedAt: 0 };
    this.#blocks.set(key, block);
    return block;
  }

  #keyBehind(path: readonly Block[], tokens: readonly number[]): string {
    const from = path.length * this.blockTokens;
    return `${path.at(-1)?.id ?? 0}:${tokens.slice(from, from + this.blockTokens).join(",")}`;
  }

  /** Last block first, so that it is evicted first. */
  #use(path: readonly Block[], now: number): void {
    for (const block of path.toReversed()) {
      block.usedAt = now;
      this.#blocks.get(block.key);
    }
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
