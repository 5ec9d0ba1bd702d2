import type { Label } from "../text/ids.js";
import { append } from "../text/lists.js";
import { depthOf, isLeaf, type Place, placesBehind, upToAnchor } from "./index-node.js";
import type { PrefixForest } from "./prefix-forest.js";

/*
 * What leaves a context index: forgotten blocks, prefixes past a residency limit, prefixes that an engine's report missed, and the least
 * recently used nodes past the index's own bound. `places` of a forest is in LRU order, so each pass evicts the oldest first.
 */

/** Removes blocks, and everything behind them. */
export function forgetBlocks(forest: PrefixForest, labels: ReadonlySet<Label>): void {
  const parents: Place[] = [];
  const pending = [...forest.tops()];
  for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
    const cut = place.row.run.findIndex((label) => labels.has(label));
    if (cut < 0) {
      append(pending, placesBehind(place));
      continue;
    }
    for (const behind of [...placesBehind(place)]) forest.removeBranch(behind);
    if (cut > 0 && place.row.live > 0) forest.shorten(place, cut);
    else {
      forest.removeBranch(place);
      if (place.above !== null) parents.push(place.above);
    }
  }
  pruneAll(forest, parents);
}

/** Removes what was last used at or before `time`, in milliseconds. */
export function dropUnusedSince(forest: PrefixForest, time: number): void {
  for (const place of forest.places.values()) {
    if (place.row.usedAt <= time && isLeaf(place)) forest.cut(place);
  }
}

/** Removes least recently used leaves, block by block from their ends, until at most so many tokens are left. */
export function dropToFit(forest: PrefixForest, tokens: number): void {
  for (const place of forest.places.values()) {
    if (forest.tokens <= tokens) return;
    if (isLeaf(place)) forest.cutBack(place, forest.tokens - tokens);
  }
}

/** A request that hit less than its path in the index. */
interface Miss {
  /** Logical time of the request. */
  readonly clock: number;
  /** Tokens of its path that hit. */
  readonly tokens: number;
  /** What was used after this time, in milliseconds, may not have been cached yet. */
  readonly settled: number;
}

/** Removes what a request that ended at `end` shows to be evicted: everything behind the hit, and everything used no later than that. */
export function dropMissed(forest: PrefixForest, end: Place, { clock, tokens, settled }: Miss): void {
  const parents: Place[] = [];
  let gone = tokens === 0 ? clock - 1 : 0;
  let served: Place | null = null;
  for (let place: Place | null = end; place !== null && depthOf(place) > tokens; place = place.above) {
    const pending = [...placesBehind(place)].filter((behind) => behind !== served);
    for (let behind = pending.pop(); behind !== undefined; behind = pending.pop()) {
      if (behind.row.lastUsed >= clock || behind.row.usedAt > settled) append(pending, placesBehind(behind));
      else {
        gone = Math.max(gone, behind.row.lastUsed);
        forest.removeBranch(behind);
        if (behind.above !== null) parents.push(behind.above);
      }
    }
    served = place;
  }
  pruneAll(forest, parents);
  for (const place of forest.places.values()) {
    if (place.row.lastUsed > gone) return;
    if (isLeaf(place) && place.row.usedAt <= settled) forest.cut(place);
  }
}

/** Past `maxNodes`, removes a tenth of the nodes, but never the sequence that is being served (`spared`). */
export function trim(forest: PrefixForest, maxNodes: number, spared: Place): void {
  const { places } = forest;
  if (places.size <= maxNodes) return;
  const target = Math.floor(maxNodes * 0.9);
  for (const place of places.values()) {
    if (places.size <= target) return;
    if (isLeaf(place) && place !== spared) forest.cut(place);
  }
  if (places.size > target) dropOldestTurns(forest, spared, target);
}

/** Drops the oldest turns of a prompt that alone takes more than `most` nodes: their anchors leave the index. */
function dropOldestTurns(forest: PrefixForest, end: Place, most: number): void {
  let kept = 0;
  let first = end;
  for (let place: Place | null = end; place !== null; place = first.above) {
    const own = [...upToAnchor(place)];
    if (kept > 0 && kept + own.length > most) break;
    kept += own.length;
    first = own.at(-1) as Place;
  }
  let top = first.above;
  if (top === null) return;
  forest.cutAbove(first);
  while (top.above !== null) top = top.above;
  forest.removeBranch(top);
}

/** Comes after all cuts: pruning joins a node with its only child, and the result must not depend on which branch was cut first. */
function pruneAll(forest: PrefixForest, parents: readonly Place[]): void {
  for (const place of parents) if (forest.places.get(place.row.id) === place) forest.prune(place);
}
