import type { Label } from "../text/ids.js";
import type { ClusterNode } from "./cluster-node.js";
import { distanceWhereShared, type Positions } from "./context-distance.js";

/** A node in its tree. Its blocks and position are constant while it has a parent. */
export interface ClusterPlace {
  readonly row: { -readonly [K in keyof ClusterNode]: ClusterNode[K] };
  readonly children: ClusterChildren;
}

/** Maximum distances computed per node; a node with no more overlapping children is searched exactly. */
export const MAX_CANDIDATES = 64;
/** Nodes with more children keep an inverted index; others are scanned. */
const FEW_CHILDREN = 8;

/** Result of searching a node's children. */
export interface NearestChild {
  /** Null if no child shares a block with the context. */
  readonly place: ClusterPlace | null;
  readonly distance: number;
  /** There are several children, all share a block at the same distance, and all are leaves or none is. */
  readonly indistinct: boolean;
  readonly examined: number;
}

/**
 * The children of one node. With many children they are inverted, block → children, so that a search visits only children that share a
 * block with the context, and stops once no other can be nearer.
 */
export class ClusterChildren {
  /** By position, ascending. */
  readonly #all: ClusterPlace[] = [];
  /** The children that contain each block, by position, ascending. */
  #byBlock: Map<Label, ClusterPlace[]> | null = null;

  get size(): number {
    return this.#all.length;
  }

  /** The children by position. */
  [Symbol.iterator](): Iterator<ClusterPlace> {
    return this.#all.values();
  }

  add(child: ClusterPlace): void {
    insertByPosition(this.#all, child);
    if (this.#byBlock !== null) invert(this.#byBlock, child);
    else if (this.size > FEW_CHILDREN) {
      this.#byBlock = new Map();
      for (const each of this.#all) invert(this.#byBlock, each);
    }
  }

  remove(child: ClusterPlace): void {
    removeByPosition(this.#all, child);
    // Hysteresis: a node near the limit must not rebuild its inverted index again and again.
    if (this.size <= FEW_CHILDREN / 2) this.#byBlock = null;
    for (const label of this.#byBlock === null ? [] : child.row.blocks) {
      const having = this.#byBlock?.get(label);
      if (having === undefined) continue;
      removeByPosition(having, child);
      if (having.length === 0) this.#byBlock?.delete(label);
    }
  }

  /**
   * The nearest child that shares a block with the context. Ties go to a child that stands for several contexts, then to the older one.
   * Exact for up to {@link MAX_CANDIDATES} overlapping children; beyond that only the children with the rarest blocks are compared, newest
   * first.
   */
  nearest(context: Positions): NearestChild {
    const survey = new Survey(context);
    if (this.#byBlock === null) for (const child of this.#all) survey.examine(child);
    else this.#examineSharing(this.#byBlock, survey, context);
    const seenAll = survey.examined === Math.min(this.size, MAX_CANDIDATES);
    return {
      place: survey.best,
      distance: survey.distance,
      indistinct: this.size > 1 && seenAll && survey.alike,
      examined: survey.examined,
    };
  }

  /** Throws if the children are not in order or do not match the inverted index; for tests. */
  check(): void {
    for (const [at, child] of this.#all.entries()) {
      const before = this.#all[at - 1];
      if (before !== undefined && before.row.position >= child.row.position) throw new Error("a position given twice");
    }
    if (this.#byBlock === null) return;
    const expected = new Map<Label, ClusterPlace[]>();
    for (const child of this.#all) invert(expected, child);
    for (const [label, having] of this.#byBlock) {
      const same = expected.get(label);
      if (having.length !== same?.length || having.some((child, at) => child !== same[at])) {
        throw new Error(`block ${label}: inverted wrongly`);
      }
    }
    if (expected.size !== this.#byBlock.size) throw new Error("a block is not inverted");
  }

  /**
   * A child first met at the n-th rarest block shares none of the rarer ones: that bounds its distance by eq. 1, and that of all later
   * children.
   */
  #examineSharing(byBlock: ReadonlyMap<Label, readonly ClusterPlace[]>, survey: Survey, context: Positions): void {
    const rarestFirst: (readonly ClusterPlace[])[] = [];
    for (const label of context.keys()) {
      const having = byBlock.get(label);
      if (having !== undefined) rarestFirst.push(having);
    }
    rarestFirst.sort((a, b) => a.length - b.length);
    const met = new Set<ClusterPlace>();
    for (const [n, having] of rarestFirst.entries()) {
      if (1 - (rarestFirst.length - n) / context.size > survey.distance) return;
      for (let at = having.length - 1; at >= 0; at--) {
        const child = having[at] as ClusterPlace;
        if (met.has(child)) continue;
        met.add(child);
        survey.examine(child);
        if (met.size === MAX_CANDIDATES || met.size === this.size) return;
      }
    }
  }
}

/** Compares children in any order. */
class Survey {
  best: ClusterPlace | null = null;
  distance = Number.POSITIVE_INFINITY;
  /** Whether all examined children are indistinguishable so far. */
  alike = true;
  examined = 0;

  constructor(private readonly context: Positions) {}

  examine(child: ClusterPlace): void {
    this.examined++;
    const distance = distanceWhereShared(this.context, child.row.blocks);
    if (distance === null) {
      this.alike = false;
      return;
    }
    const { best } = this;
    if (best !== null && (distance !== this.distance || isLeaf(child) !== isLeaf(best))) this.alike = false;
    if (best === null || distance < this.distance || (distance === this.distance && isPreferred(child, best))) {
      this.best = child;
      this.distance = distance;
    }
  }
}

function isLeaf(place: ClusterPlace): boolean {
  return place.children.size === 0;
}

function isPreferred(a: ClusterPlace, b: ClusterPlace): boolean {
  return isLeaf(a) === isLeaf(b) ? a.row.position < b.row.position : isLeaf(b);
}

function invert(byBlock: Map<Label, ClusterPlace[]>, child: ClusterPlace): void {
  for (const label of child.row.blocks) {
    const having = byBlock.get(label);
    if (having === undefined) byBlock.set(label, [child]);
    else insertByPosition(having, child);
  }
}

function insertByPosition(sorted: ClusterPlace[], place: ClusterPlace): void {
  const at = rankOf(sorted, place.row.position);
  if (at === sorted.length) sorted.push(place);
  else sorted.splice(at, 0, place);
}

function removeByPosition(sorted: ClusterPlace[], place: ClusterPlace): void {
  sorted.splice(rankOf(sorted, place.row.position), 1);
}

/** Number of places before this position. */
function rankOf(sorted: readonly ClusterPlace[], position: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as ClusterPlace).row.position < position) low = middle + 1;
    else high = middle;
  }
  return low;
}
