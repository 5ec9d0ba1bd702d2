import { LruMap } from "../core/index.js";
import { type CacheLimits, capacityOf, type PrefixCache } from "./prefix-cache.js";
import { type TokenNode, TokenTree } from "./token-tree.js";

/**
 * SGLang's prefix cache (`sglang/srt/mem_cache/radix_cache.py`, page size 1): a radix tree of tokens, exact to the token. A prompt hits what
 * it shares with the tree, but never its last token, which is computed for its logits (`schedule_batch.py`: the longest prefix is one less
 * than the input). Eviction is LRU by whole leaves, except those on the running request's path. As in SGLang, a leaf that a prompt leaves
 * midway counts as used whole. One request at a time is simulated, without its answer.
 */
export class RadixCache implements PrefixCache {
  readonly #tree = new TokenTree();
  /** LRU order of all nodes; on a path, descendants before ancestors, so that the oldest is always a leaf. */
  readonly #order = new LruMap<TokenNode, TokenNode>();
  readonly #capacityTokens: number;

  constructor(limits: CacheLimits = {}) {
    this.#capacityTokens = capacityOf(limits);
  }

  get heldTokens(): number {
    return this.#tree.heldTokens;
  }

  serve(tokens: readonly number[]): number {
    const found = this.#shared(tokens, tokens.length - 1);
    const room = this.#makeRoom(tokens.length - found.end, found);
    // Of a prompt larger than the capacity, a prefix is kept.
    const end = Math.min(tokens.length, found.end + room);
    const held = this.#shared(tokens, end);
    if (held.end < end) this.#usePath(this.#tree.append(held, tokens, end));
    return found.end;
  }

  /** Marks what the prompt's first `end` tokens share with the tree as used; returns the node where that ends. */
  #shared(tokens: readonly number[], end: number): TokenNode {
    const { node, rest } = this.#tree.descend(tokens, end);
    if (rest !== null) this.#order.set(rest, rest);
    this.#usePath(node);
    return node;
  }

  #usePath(deepest: TokenNode): void {
    for (let node = deepest; node.parent !== null; node = node.parent) this.#order.set(node, node);
  }

  /** Evicts to make room for `tokens`; returns how much there is. `firstInUse` is the least recently used of the nodes in use. */
  #makeRoom(tokens: number, firstInUse: TokenNode): number {
    for (const oldest of this.#order.values()) {
      if (oldest === firstInUse || this.#capacityTokens - this.heldTokens >= tokens) break;
      this.#order.delete(oldest);
      this.#tree.remove(oldest);
    }
    return this.#capacityTokens - this.heldTokens;
  }
}
