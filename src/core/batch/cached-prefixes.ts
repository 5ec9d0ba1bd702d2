import { ContextIndex } from "../context-index/context-index.js";
import type { WantedTokens } from "../context-index/prefix-forest.js";
import { RecentRetrievals, type ScopeKnowledge } from "../ordering/ordering.js";
import { orderForReuse, prefixExact } from "../ordering/prefix-exact.js";
import type { Digest, Label, TurnId } from "../text/ids.js";
import type { KeyGroup } from "./batch-plan.js";
import { tokensIn } from "./prefix-tree.js";

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
 * What should be cached after one key's bytes, and the requests expected to come back: a context index and recent requests of the plan's own,
 * in a batch's block numbers. As if the cache evicted nothing while the batch is executed.
 */
export class CachedPrefixes {
  /** Null until something is looked up that is not empty: most batches have many keys of which nothing is known. */
  #known: ScopeKnowledge | null = null;
  /** How many first blocks are cached before anything is served. */
  #before = 0;
  #clock = 0;

  constructor(
    private readonly from: Pick<KeyGroup, "cached" | "recent">,
    private readonly marked: MarkedBlocks,
  ) {}

  /** Whether nothing was cached before anything is served. */
  get isEmpty(): boolean {
    return this.from.cached.length === 0;
  }

  /**
   * The cached prefix with the most tokens whose every block is among `blocks`.
   *
   * @param limit a prefix that no result exceeds in tokens: if all its blocks are there, it is the result
   */
  longest(blocks: readonly number[], limit: CachedPrefix | null = null): CachedPrefix {
    if (this.isEmpty || limit?.tokens === 0) return NOTHING_CACHED;
    const { marked } = this;
    marked.mark(blocks);
    if (limit?.blocks.every((block) => marked.has(block as Label))) return limit;
    const { labels, tokens, searchPath } = this.#built().index.search(ANCHOR, marked);
    return { blocks: labels, tokens, path: searchPath };
  }

  /** The order of a request that shares nothing with the batch: what `prefix-exact` gives. */
  orderAlone(set: readonly number[]): readonly number[] {
    if (this.isEmpty && this.from.recent.length === 0 && this.#clock === 0) return set;
    const { tokensOf } = this.marked;
    const retrieved = set.map((block) => ({ label: block as Label, tokens: tokensOf[block] as number }));
    return prefixExact.order({ anchor: ANCHOR, retrieved, carrying: null }, this.#built()).labels;
  }

  /** Orders blocks after those in `front` for later batches: as `prefix-exact` orders the rest of a request for the blocks in `asked`. */
  orderShared(front: readonly number[], blocks: readonly number[], asked: readonly number[]): readonly number[] {
    if (this.from.recent.length === 0) return blocks;
    const { tokensOf } = this.marked;
    const rest = blocks.map((block) => ({ label: block as Label, tokens: tokensOf[block] as number }));
    return orderForReuse(front as readonly Label[], rest, asked as readonly Label[], this.#built().recent);
  }

  /** Serves a request as if it came by itself: {@link orderAlone}, cached afterwards. Returns the order and the tokens that it hits. */
  serveAlone(set: readonly number[]): { readonly order: readonly number[]; readonly hit: number } {
    const order = this.orderAlone(set) as readonly Label[];
    const { index, recent } = this.#built();
    const held = index.heldBlocks(ANCHOR, order);
    index.insert(ANCHOR, order, ++this.#clock);
    recent.take(set as readonly Label[], this.#clock as TurnId);
    return { order, hit: tokensIn(order.slice(0, held), this.marked.tokensOf) };
  }

  /** Child positions to the end of a served sequence: sequences that begin alike have paths that begin alike. */
  pathOf(order: readonly number[]): readonly number[] {
    const { index } = this.#built();
    const end = index.endOf(ANCHOR, order as readonly Label[]);
    return end === null ? [] : index.pathTo(end, 0).searchPath;
  }

  /** Whether the first block of a path was cached before anything was served. */
  isFromBefore([first]: readonly number[]): boolean {
    return first !== undefined && first < this.#before;
  }

  #built(): ScopeKnowledge {
    if (this.#known !== null) return this.#known;
    const { cached, recent } = this.from;
    const index = new ContextIndex([], 1, Number.POSITIVE_INFINITY);
    for (const sequence of cached) index.insert(ANCHOR, sequence as readonly Label[], ++this.#clock);
    this.#before = index.root(ANCHOR)?.children.size ?? 0;
    const rows = recent.map((set, at) => ({ turn: (at - recent.length) as TurnId, labels: set as readonly Label[] }));
    this.#known = { index, recent: new RecentRetrievals(rows) };
    return this.#known;
  }
}

/** Some of a batch's blocks with their tokens, to search for: one per batch, marked again for each search. */
export class MarkedBlocks implements WantedTokens {
  /** By block: the last marking that it was part of. */
  readonly #marks: Uint32Array;
  #marking = 0;
  #blocks: readonly number[] = [];

  constructor(readonly tokensOf: Float64Array) {
    this.#marks = new Uint32Array(tokensOf.length);
  }

  get size(): number {
    return this.#blocks.length;
  }

  /** Replaces the marked blocks. */
  mark(blocks: readonly number[]): this {
    this.#marking++;
    for (const block of blocks) this.#marks[block] = this.#marking;
    this.#blocks = blocks;
    return this;
  }

  has(block: Label): boolean {
    return this.#marks[block] === this.#marking;
  }

  get(block: Label): number | undefined {
    return this.has(block) ? this.tokensOf[block] : undefined;
  }

  keys(): Iterable<Label> {
    return this.#blocks as readonly Label[];
  }
}
