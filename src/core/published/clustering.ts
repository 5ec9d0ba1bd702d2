import type { BatchOrder, BatchRequest } from "../batch/batch-plan.js";
import { contextComponents, contextParts } from "../batch/prefix-tree.js";
import { alignTo, blocksKey, intersectionOf, labelsOf } from "../ordering/ordering.js";
import { groupBy, keptIn } from "../text/collections.js";
import type { Label, NodeId } from "../text/ids.js";
import { ALPHA, type ClusterNode, ClusterTree, positionsOf } from "./cluster-tree.js";

/** Maximum connected contexts that are clustered exactly: more take over 0.6 GB. */
const MAX_EXACT_CONTEXTS = 12_000;
/** Size of the parts of larger components. Figures: docs/papers.md, "ContextPilot". */
const PART_CONTEXTS = 1_000;

interface Cluster {
  readonly blocks: readonly Label[];
  readonly children: readonly Cluster[];
  readonly distance: number;
}

/**
 * Builds the cluster tree of known contexts (Alg. 4): average linkage over eq. 1, inner nodes of common blocks, then every node aligned with its
 * parent. Same blocks share a leaf; nodes without blocks are replaced by their children. Never merges contexts that no shared blocks connect, so
 * one user's clusters do not depend on another's. O(N²) time, 4·N² bytes; more than `maxExact` connected contexts are clustered in parts.
 */
export function clusterContexts(
  contexts: readonly (readonly Label[])[],
  { maxExact = MAX_EXACT_CONTEXTS, partSize = PART_CONTEXTS } = {},
): readonly ClusterNode[] {
  const distinct = new Map<string, readonly Label[]>();
  for (const context of contexts) if (context.length > 0) keptIn(distinct, blocksKey(context), () => context);
  const blocks = [...distinct.values()];
  if (blocks.length === 0) return [];
  const clusters: (Cluster | null)[] = blocks.map((leaf) => ({ blocks: leaf, children: [], distance: 0 }));
  for (const component of contextComponents(blocks)) {
    const parts = component.length > maxExact ? contextParts(blocks, component, partSize) : [component];
    for (const part of parts) mergeNearest(clusters, part);
  }
  const children = clusters.filter((cluster) => cluster !== null);
  return rowsOf({ blocks: [], children, distance: 0 });
}

/** Merges a part's clusters with common blocks. Skips a merge without any, and every merge on top of it. */
function mergeNearest(clusters: (Cluster | null)[], part: readonly number[]): void {
  const open = new Set(part);
  for (const { first, second, distance } of averageLinkage(part.map((at) => clusters[at]?.blocks ?? []))) {
    const [a, b] = [part[first] as number, part[second] as number];
    const [one, other] = [clusters[a], clusters[b]];
    const isOpen = open.has(a) && open.has(b) && one != null && other != null;
    const blocks = isOpen ? intersectionOf(one.blocks, other.blocks) : [];
    if (isOpen && blocks.length > 0) {
      clusters[a] = { blocks, children: [one, other], distance };
      clusters[b] = null;
    } else {
      open.delete(a);
    }
    open.delete(b);
  }
}

function rowsOf(root: Cluster): readonly ClusterNode[] {
  const nodes: ClusterNode[] = [];
  const pending: { cluster: Cluster; parent: ClusterNode | null; position: number }[] = [
    { cluster: root, parent: null, position: 0 },
  ];
  for (const { cluster, parent, position } of pending) {
    const row: ClusterNode = {
      id: (nodes.length + 1) as NodeId,
      parent: parent?.id ?? null,
      blocks: alignTo(parent?.blocks ?? [], cluster.blocks),
      position,
      nextPosition: cluster.children.length,
      distance: cluster.distance,
      lastUsed: 0,
    };
    nodes.push(row);
    for (const [at, child] of cluster.children.entries()) pending.push({ cluster: child, parent: row, position: at });
  }
  return nodes;
}

/** A cluster is named by its oldest context, so a merged one keeps the older name, `first`. */
export interface Merge {
  readonly first: number;
  readonly second: number;
  /** Mean context distance (eq. 1) between the two clusters' contexts. */
  readonly distance: number;
}

/** Whether `sum / weight < otherSum / otherWeight`, for whole numbers below 2^53. Exact, unlike rounded divisions. */
function isSmaller(sum: number, weight: number, otherSum: number, otherWeight: number): boolean {
  const [left, right] = [sum * otherWeight, otherSum * weight];
  if (left <= Number.MAX_SAFE_INTEGER && right <= Number.MAX_SAFE_INTEGER) return left < right;
  return BigInt(sum) * BigInt(otherWeight) < BigInt(otherSum) * BigInt(weight);
}

/**
 * Average-linkage clustering by eq. 1 (Alg. 4), as if always merging the nearest pair; ties go to the oldest contexts. A nearest-neighbour chain:
 * average linkage is reducible, so clusters that are each other's nearest may merge at once. Merges are ordered children before parents. O(N²)
 * time, 4·N² bytes.
 */
export function averageLinkage(contexts: readonly (readonly Label[])[]): Merge[] {
  const steps = distanceSteps(
    contexts.length,
    contexts.reduce((longest, { length }) => Math.max(longest, length), 0),
  );
  const { distances, nearest } = pairDistances(contexts, steps);
  return new NearestNeighbourChain(distances, nearest, steps).merges();
}

/** Rounded products within this relative distance are compared exactly. */
const ROUNDING = 1 + 2 ** -50;

class NearestNeighbourChain {
  /** Ascending; a cluster's place here is its index in `sums`. */
  #names: Int32Array;
  /** Number of contexts, by place; 0 for a merged cluster. */
  #weights: Float64Array;
  /** 1 / weight, by place; NaN for a merged cluster, so that no comparison finds it near. */
  #shares: Float64Array;
  #nearest: Int32Array;
  #left: number;
  readonly #chain: number[] = [];

  constructor(
    /** Sums of distances between two clusters' contexts, see {@link pairAt}. */
    readonly sums: Float64Array,
    /** By place; -1 if unknown. Other merges do not change it: a merged cluster is no nearer. */
    nearest: Int32Array,
    readonly steps: number,
  ) {
    const contexts = nearest.length;
    this.#names = Int32Array.from(nearest.keys());
    this.#weights = new Float64Array(contexts).fill(1);
    this.#shares = new Float64Array(contexts).fill(1);
    this.#nearest = nearest;
    this.#left = contexts;
  }

  merges(): Merge[] {
    const merges: Merge[] = [];
    const chain = this.#chain;
    while (this.#left > 1) {
      if (chain.length === 0) chain.push(this.#weights.findIndex((weight) => weight > 0));
      const last = chain.at(-1) as number;
      if (this.#nearest[last] === -1) this.#nearest[last] = this.#findNearest(last);
      const nearest = this.#nearest[last] as number;
      if (nearest !== chain.at(-2)) {
        chain.push(nearest);
        continue;
      }
      chain.length -= 2;
      merges.push(this.#merge(Math.min(last, nearest), Math.max(last, nearest)));
      if (this.#left * 4 < this.#names.length * 3) this.#closeGaps();
    }
    return merges;
  }

  #findNearest(of: number): number {
    const [sums, weights, shares] = [this.sums, this.#weights, this.#shares];
    let [nearest, least, weight] = [-1, 0, 1];
    let limit = Number.POSITIVE_INFINITY;
    for (let other = 0; other < shares.length; other++) {
      if (other === of) continue;
      const sum = sums[pairAt(of, other)] as number;
      const mean = sum * (shares[other] as number);
      if (!(mean <= limit)) continue;
      if (nearest >= 0 && !isSmaller(sum, weights[other] as number, least, weight)) continue;
      [nearest, least, weight] = [other, sum, weights[other] as number];
      limit = mean * ROUNDING;
    }
    return nearest;
  }

  #merge(a: number, b: number): Merge {
    const [sums, weights, shares] = [this.sums, this.#weights, this.#shares];
    const [first, second] = [weights[a] as number, weights[b] as number];
    const distance = (sums[pairAt(a, b)] as number) / (first * second) / this.steps;
    weights[b] = 0;
    shares[b] = Number.NaN;
    for (let other = 0; other < shares.length; other++) {
      if (other !== a && other !== b) (sums[pairAt(a, other)] as number) += sums[pairAt(b, other)] as number;
      if (this.#nearest[other] === a || this.#nearest[other] === b) this.#nearest[other] = -1;
    }
    this.#nearest[a] = this.#findNearest(a);
    weights[a] = first + second;
    shares[a] = 1 / (first + second);
    this.#left--;
    return { first: this.#names[a] as number, second: this.#names[b] as number, distance };
  }

  /** Compacts the remaining clusters, so that passes are dense. */
  #closeGaps(): void {
    const kept = Int32Array.from(this.#weights.keys()).filter((place) => this.#weights[place] !== 0);
    const newPlace = new Map(Array.from(kept, (place, at) => [place, at]));
    // Ascending: every pair moves to the front, so none is overwritten before it has moved.
    let to = 0;
    for (let i = 1; i < kept.length; i++)
      for (let j = 0; j < i; j++) this.sums[to++] = this.sums[pairAt(kept[i] as number, kept[j] as number)] as number;
    this.#names = kept.map((place) => this.#names[place] as number);
    this.#nearest = kept.map((place) => newPlace.get(this.#nearest[place] as number) ?? -1);
    this.#weights = Float64Array.from(kept, (place) => this.#weights[place] as number);
    this.#shares = this.#weights.map((weight) => 1 / weight);
    for (const [at, place] of this.#chain.entries()) this.#chain[at] = newPlace.get(place) as number;
  }
}

/** Steps per unit of distance. Whole steps make sums exact and independent of the merge order: about 2^32 for 2,000 contexts, 2^27 for 12,000. */
export function distanceSteps(contexts: number, longest: number): number {
  const pairs = Math.max(1, (contexts * contexts) / 4);
  const farthest = 1 + ALPHA * longest;
  return 2 ** Math.min(40, Math.floor(53 - Math.log2(pairs * farthest)));
}

/** The index of a pair in a table of all pairs: below the diagonal, row by row. */
function pairAt(a: number, b: number): number {
  return a > b ? (a * (a - 1)) / 2 + b : (b * (b - 1)) / 2 + a;
}

/** Eq. 1 for all pairs that share a block, in steps. `nearest`: each one's, the oldest of several; -1 if none is nearer than a stranger. */
function pairDistances(contexts: readonly (readonly Label[])[], steps: number) {
  const n = contexts.length;
  const distances = new Float64Array((n * (n - 1)) / 2).fill(steps);
  const nearest = new Int32Array(n).fill(-1);
  // Half a step below the distance of contexts that share nothing, which are never the nearest.
  const least = new Float64Array(n).fill(steps - 0.5);
  /** The contexts so far that contain each block, each followed by its position there. */
  const holders = new Map<Label, number[]>();
  const shared = new Int32Array(n);
  const shift = new Int32Array(n);
  for (const [i, context] of contexts.entries()) {
    const touched: number[] = [];
    for (const [position, label] of context.entries()) {
      const held = keptIn(holders, label, () => []);
      for (let at = 0; at < held.length; at += 2) {
        const j = held[at] as number;
        if (shared[j] === 0) touched.push(j);
        (shared[j] as number)++;
        (shift[j] as number) += Math.abs((held[at + 1] as number) - position);
      }
      held.push(i, position);
    }
    for (const j of touched) {
      const [both, moved] = [shared[j] as number, shift[j] as number];
      const longer = Math.max(context.length, contexts[j]?.length ?? 0);
      const distance = Math.round((1 - both / longer + (ALPHA * moved) / both) * steps);
      distances[pairAt(i, j)] = distance;
      shared[j] = 0;
      shift[j] = 0;
      if (distance < (least[i] as number) || (distance === least[i] && j < (nearest[i] as number))) {
        least[i] = distance;
        nearest[i] = j;
      }
      // Older contexts come first, so of equally near ones the first stays.
      if (distance < (least[j] as number)) {
        least[j] = distance;
        nearest[j] = i;
      }
    }
  }
  return { distances, nearest };
}

/** ContextPilot's tree of a key's contexts. */
export interface ClusteredKey {
  readonly key: string;
  readonly nodes: readonly ClusterNode[];
}

/** ContextPilot's batch planning, key by key: Alg. 4 without a tree, else Alg. 2 on it; then Alg. 5. As published, it assumes an empty cache. */
export function clusteredBatch(
  requests: readonly BatchRequest[],
  known: readonly ClusteredKey[],
): BatchOrder & { readonly trees: readonly ClusteredKey[] } {
  const orders: (readonly Label[])[] = requests.map(() => []);
  const searchPaths: (readonly number[])[] = requests.map(() => []);
  const nodesOf = new Map(known.map(({ key, nodes }) => [key, nodes]));
  const trees: ClusteredKey[] = [];
  const steps = new Map<string, number>();
  for (const [key, ofKey] of groupBy(requests.keys(), (at) => requests[at]?.key ?? "")) {
    const contexts = ofKey.map((at) => [...positionsOf(labelsOf(requests[at]?.blocks ?? [])).keys()]);
    const before = nodesOf.get(key) ?? [];
    const nodes = before.length > 0 ? before : clusterContexts(contexts);
    const tree = new ClusterTree(nodes, Number.POSITIVE_INFINITY);
    for (const [nth, at] of ofKey.entries()) {
      const context = contexts[nth] as Label[];
      tree.insert(context, 0);
      const leaf = tree.leafOf(context);
      if (leaf === null) continue;
      const [first, ...rest] = leaf.searchPath;
      orders[at] = leaf.blocks;
      searchPaths[at] = [keptIn(steps, `${first} ${key}`, () => steps.size), ...rest];
    }
    trees.push({ key, nodes: tree.stored() });
  }
  const shared = orders.map(({ length }) => length);
  return { orders, shared, searchPaths, sequence: schedule(searchPaths), trees };
}

/** Alg. 5: groups by the first step of the search paths, larger groups first; within one, longer paths first. Gives input indices. */
export function schedule(searchPaths: readonly (readonly number[])[]): number[] {
  const requests = searchPaths.map((path, input) => ({ path, input }));
  const groups = [...groupBy(requests, ({ path, input }) => path[0] ?? `alone ${input}`).values()];
  return groups
    .sort((a, b) => b.length - a.length)
    .flatMap((group) => group.sort((a, b) => b.path.length - a.path.length).map(({ input }) => input));
}
