import { RecentRetrievals } from "../blocks/seen-retrievals.js";
import { ContextIndex } from "../context-index/context-index.js";
import { prefixExact } from "../ordering/prefix-exact.js";
import type { Digest, Label, TurnId } from "../text/ids.js";
import type { KeyGroup } from "./batch-request.js";

/** A cached prefix, in the numbers of a batch. */
export interface CachedPrefix {
  /** Blocks in cached order. */
  readonly blocks: readonly number[];
  readonly tokens: number;
  /** Child positions in the tree of cached sequences, in which older sequences come first. */
  readonly path: readonly number[];
}

export const NOTHING_CACHED: CachedPrefix = { blocks: [], tokens: 0, path: [] };

/** All sequences of one key share it. */
const ANCHOR = "" as Digest;

/**
 * What should be cached behind one key's bytes, and the requests expected to come back: a context index and recent requests of a batch's own,
 * in its block numbers. A cache that evicts nothing while the batch is executed.
 */
export class CachedPrefixes {
  readonly #index = new ContextIndex([], 1, Number.POSITIVE_INFINITY);
  readonly #recent: RecentRetrievals;
  readonly #tokensOf: Float64Array;
  readonly #before: number;
  #clock = 0;

  constructor({ cached, recent }: Pick<KeyGroup, "cached" | "recent">, tokensOf: Float64Array) {
    this.#tokensOf = tokensOf;
    for (const sequence of cached) this.#index.insert(ANCHOR, sequence as readonly Label[], ++this.#clock);
    this.#before = this.#index.root(ANCHOR)?.children.size ?? 0;
    this.#recent = new RecentRetrievals(
      recent.map((set, at) => ({ turn: (at - recent.length) as TurnId, labels: set as readonly Label[] })),
    );
  }

  get isEmpty(): boolean {
    return this.#clock === 0;
  }

  /** The cached prefix with the most tokens whose every block is among these. */
  longest(blocks: readonly number[]): CachedPrefix {
    if (this.isEmpty) return NOTHING_CACHED;
    const { labels, tokens, searchPath } = this.#index.search(ANCHOR, this.#wanted(blocks));
    return { blocks: labels, tokens, path: searchPath };
  }

  /** The order of a request that shares nothing with the batch: what `prefix-exact` gives. */
  orderAlone(set: readonly number[]): readonly number[] {
    const retrieved = [...this.#wanted(set)].map(([label, tokens]) => ({ label, tokens }));
    return prefixExact.order(
      { anchor: ANCHOR, retrieved, carrying: null },
      { index: this.#index, recent: this.#recent },
    ).labels;
  }

  /** Serves a request as if it came by itself: {@link orderAlone}, cached afterwards. Returns the order and the tokens that it hits. */
  serveAlone(set: readonly number[]): { readonly order: readonly number[]; readonly hit: number } {
    const order = this.orderAlone(set);
    const hit = this.#tokensIn(order.slice(0, this.#index.heldBlocks(ANCHOR, order as readonly Label[])));
    this.#index.insert(ANCHOR, order as readonly Label[], ++this.#clock);
    this.#recent.take(set as readonly Label[], this.#clock as TurnId);
    return { order, hit };
  }

  /** Child positions to the end of a served sequence: sequences that begin alike have paths that begin alike. */
  pathOf(order: readonly number[]): readonly number[] {
    const end = this.#index.endOf(ANCHOR, order as readonly Label[]);
    return end === null ? [] : this.#index.pathTo(end, 0).searchPath;
  }

  /** Whether the first block of a path was cached before anything was served. */
  isFromBefore([first]: readonly number[]): boolean {
    return first !== undefined && first < this.#before;
  }

  #wanted(blocks: readonly number[]): Map<Label, number> {
    return new Map(blocks.map((block) => [block as Label, this.#tokensOf[block] as number]));
  }

  #tokensIn(blocks: readonly number[]): number {
    return blocks.reduce((sum, block) => sum + (this.#tokensOf[block] as number), 0);
  }
}
