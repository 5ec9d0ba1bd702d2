import { SimulatedCache } from "../src/core/cache/simulated-cache.js";

/** What a user's searches have in common, each as a share of all blocks that they returned. */
export interface OverlapShares {
  /** Blocks that an earlier search returned too, at any place: "unordered" overlap. */
  readonly shared: number;
  /** Blocks within the longest prefix that an earlier search began with too: "ordered" overlap, all that a prefix cache can reuse as it is. */
  readonly aligned: number;
  /** Largest overlap with any one earlier search: no order of a search's own blocks can reuse more. */
  readonly nearest: number;
}

/** Overlap of one user's searches, each a list of distinct blocks, best first. All 0 where nothing was returned. */
export function overlapShares(searches: readonly (readonly number[])[]): OverlapShares {
  const seen = new Set<number>();
  const earlier: ReadonlySet<number>[] = [];
  let [shared, nearest] = [0, 0];
  for (const search of searches) {
    shared += search.filter((block) => seen.has(block)).length;
    nearest += Math.max(0, ...earlier.map((blocks) => search.filter((block) => blocks.has(block)).length));
    for (const block of search) seen.add(block);
    earlier.push(new Set(search));
  }
  const aligned = leadingHeld(searches).reduce((sum, held) => sum + held, 0);
  const all = blocksOf(searches);
  const share = (blocks: number) => (all === 0 ? 0 : blocks / all);
  return { shared: share(shared), aligned: share(aligned), nearest: share(nearest) };
}

/** Share of blocks that an earlier turn of the same session returned, where every so many searches are a session. */
export function sharedInSession(searches: readonly (readonly number[])[], turns: number): number {
  let shared = 0;
  for (let first = 0; first < searches.length; first += turns) {
    const session = searches.slice(first, first + turns);
    shared += overlapShares(session).shared * blocksOf(session);
  }
  const all = blocksOf(searches);
  return all === 0 ? 0 : shared / all;
}

/**
 * Share of all returned blocks that is of the blocks returned most often.
 *
 * @param most how many blocks these are
 */
export function shareOfMostReturned(searches: readonly (readonly number[])[], most: number): number {
  const counts = new Map<number, number>();
  for (const block of searches.flat()) counts.set(block, (counts.get(block) ?? 0) + 1);
  const sorted = [...counts.values()].sort((a, b) => b - a);
  const all = blocksOf(searches);
  return all === 0 ? 0 : sorted.slice(0, Math.round(most)).reduce((sum, count) => sum + count, 0) / all;
}

/**
 * Share of the words of some texts that stand in a run of so many words, or a longer one, that an earlier text has too, whatever the letter
 * case: what references to parts of texts could spare at most, if they took no tokens themselves.
 */
export function sharedWords(texts: readonly string[], run: number): number {
  const known = new Set<string>();
  let [all, shared] = [0, 0];
  for (const text of texts) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const starts = Array.from({ length: Math.max(0, words.length - run + 1) }, (_, at) => at);
    const runAt = (at: number) => words.slice(at, at + run).join(" ");
    const found = new Set(
      starts.filter((at) => known.has(runAt(at))).flatMap((at) => [...words.keys()].slice(at, at + run)),
    );
    for (const at of starts) known.add(runAt(at));
    all += words.length;
    shared += found.size;
  }
  return all === 0 ? 0 : shared / all;
}

/** Of each order, how many blocks from its front some earlier order began with: an endless cache that is exact on blocks. */
export function leadingHeld(orders: readonly (readonly number[])[]): number[] {
  const cache = new SimulatedCache("radix");
  return orders.map((order) => cache.admit(order));
}

function blocksOf(searches: readonly (readonly number[])[]): number {
  return searches.reduce((sum, { length }) => sum + length, 0);
}
