import type { KeyGroup } from "./batch-request.js";
import { CachedPrefixes } from "./cached-prefixes.js";
import type { MarkedBlocks } from "./marked-blocks.js";
import { tokensIn } from "./prefix-tree.js";

/** A request with its order, and the child positions of its end in the tree of served sequences. */
export interface RequestAlone {
  readonly request: number;
  readonly order: readonly number[];
  /** Empty for a request without blocks. */
  readonly path: readonly number[];
  /** Whether it begins with a block that was cached before the first of the requests. */
  readonly isCached: boolean;
}

/**
 * The orders of requests that are composed one after the other by `prefix-exact`, in a cache that evicts nothing. Null unless they hit more
 * than `least` tokens: stops once they cannot. In depth-first order of the tree of served sequences, so that what two of them share is used
 * back to back; what they hit in such a cache does not depend on the execution order.
 */
export function oneByOne(
  group: KeyGroup,
  sets: readonly (readonly number[])[],
  marked: MarkedBlocks,
  least: number,
): readonly RequestAlone[] | null {
  const { tokensOf } = marked;
  const cached = new CachedPrefixes(group, marked);
  const setOf = (request: number) => sets[request] ?? [];
  const ahead = new FirstUses(group.cached);
  // What all of them can hit at most: a block that is not cached is computed once.
  let reach = 0;
  for (const request of group.requests) reach += tokensIn(ahead.again(setOf(request)), tokensOf);
  if (reach <= least) return null;
  const soFar = new FirstUses(group.cached);
  const orders: { readonly request: number; readonly order: readonly number[] }[] = [];
  for (const request of group.requests) {
    const set = setOf(request);
    const { order, hit } = cached.serveAlone(set);
    reach -= tokensIn(soFar.again(set), tokensOf) - hit;
    if (reach <= least) return null;
    orders.push({ request, order });
  }
  return orders
    .map(({ request, order }) => {
      const path = cached.pathOf(order);
      return { request, order, path, isCached: cached.isFromBefore(path) };
    })
    .sort((a, b) => comparePaths(a.path, b.path) || a.request - b.request);
}

/** Tells the first uses of blocks from later ones. */
class FirstUses {
  readonly #used = new Set<number>();

  constructor(sequences: readonly (readonly number[])[]) {
    for (const sequence of sequences) for (const block of sequence) this.#used.add(block);
  }

  /** The blocks of a request that were used before it; takes the request in. */
  again(set: readonly number[]): readonly number[] {
    const again = set.filter((block) => this.#used.has(block));
    for (const block of set) this.#used.add(block);
    return again;
  }
}

/** Negative if `a` comes before `b` depth first; 0 for equal paths. */
export function comparePaths(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    const difference = (a[at] as number) - (b[at] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
