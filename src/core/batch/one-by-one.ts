import type { KeyGroup } from "./batch-request.js";
import { CachedPrefixes } from "./cached-prefixes.js";
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
  tokensOf: Float64Array,
  least: number,
): readonly RequestAlone[] | null {
  const cached = new CachedPrefixes(group, tokensOf);
  const setOf = (request: number) => sets[request] ?? [];
  let reach = group.requests.reduce((sum, request) => sum + tokensIn(setOf(request), tokensOf), 0);
  const orders: { readonly request: number; readonly order: readonly number[] }[] = [];
  for (const request of group.requests) {
    const set = setOf(request);
    const { order, hit } = cached.serveAlone(set);
    reach -= tokensIn(set, tokensOf) - hit;
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

/** Negative if `a` comes before `b` depth first; 0 for equal paths. */
export function comparePaths(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    const difference = (a[at] as number) - (b[at] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
