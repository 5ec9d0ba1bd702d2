import { alignTo, blocksKey, intersectionOf } from "./alignment.js";
import type { ClusterNode } from "./cluster-node.js";
import { MAX_TICKETS } from "./cluster-tree.js";
import { distanceWhereShared, positionsOf } from "./context-distance.js";
import { groupBy } from "./group-by.js";
import type { Label, NodeId, TurnId } from "./ids.js";

/** One request's context: distinct blocks in relevance order. */
export interface TicketedContext {
  readonly ticket: TurnId;
  readonly blocks: readonly Label[];
}

/** What a cluster tree loads. */
export interface ClusteredRows {
  readonly nodes: readonly ClusterNode[];
  readonly nextId: number;
}

interface Cluster {
  readonly blocks: readonly Label[];
  readonly children: readonly Cluster[];
  readonly distance: number;
  /** On leaves only. */
  readonly tickets: readonly TurnId[];
  /** Contexts in it; identical ones count once. */
  readonly weight: number;
}

/**
 * Builds a cluster tree of contexts that are all known (Alg. 4): average linkage over eq. 1, a node for what two clusters have in
 * common, and from the top down every node's blocks behind its parent's. Contexts of the same blocks share a leaf; nodes with
 * nothing in common go and their children move up; empty contexts are left out. Ids count from `nextId`; every leaf was last used
 * at `now`. O(N²) distances and memory.
 */
export function clusterContexts(contexts: readonly TicketedContext[], nextId: number, now: number): ClusteredRows {
  const identical = groupBy(
    contexts.filter(({ blocks }) => blocks.length > 0),
    ({ blocks }) => blocksKey(blocks),
  );
  const leaves = [...identical.values()].map((group): Cluster => {
    const tickets = group.map(({ ticket }) => ticket);
    return { blocks: group[0]?.blocks ?? [], children: [], distance: 0, tickets, weight: 1 };
  });
  if (leaves.length === 0) return { nodes: [], nextId };
  const merged = mergeNearest(leaves);
  const root: Cluster = { blocks: [], children: relinked(merged), distance: 0, tickets: [], weight: 0 };
  return rowsOf(root, nextId, now);
}

/** Average linkage. Of equally near pairs the one with the oldest contexts merges first; a cluster stands where its oldest context does. */
function mergeNearest(leaves: readonly Cluster[]): Cluster {
  const clusters: (Cluster | null)[] = [...leaves];
  const distances = leaves.map((a, i) => {
    const positions = positionsOf(a.blocks);
    return Float64Array.from(leaves, (b, j) => (j > i ? (distanceWhereShared(positions, b.blocks) ?? 1) : 0));
  });
  const between = (i: number, j: number) => distances[Math.min(i, j)]?.[Math.max(i, j)] ?? Number.POSITIVE_INFINITY;
  /** Of each cluster, the nearest of those that come after it. */
  const nearest = leaves.map((_, i) => nearestAfter(i));
  function nearestAfter(i: number): number {
    let best = -1;
    for (let j = i + 1; j < clusters.length; j++) {
      if (clusters[j] !== null && (best < 0 || between(i, j) < between(i, best))) best = j;
    }
    return best;
  }
  for (let left = leaves.length; left > 1; left--) {
    let a = -1;
    for (const [i, j] of nearest.entries()) {
      if (clusters[i] === null || j < 0) continue;
      if (a < 0 || between(i, j) < between(a, nearest[a] as number)) a = i;
    }
    const b = nearest[a] as number;
    const [first, second] = [clusters[a], clusters[b]] as [Cluster, Cluster];
    const weight = first.weight + second.weight;
    clusters[a] = {
      blocks: intersectionOf(first.blocks, second.blocks),
      children: [first, second],
      distance: between(a, b),
      tickets: [],
      weight,
    };
    clusters[b] = null;
    for (const [i, cluster] of clusters.entries()) {
      if (cluster === null || i === a) continue;
      const mean = (first.weight * between(a, i) + second.weight * between(b, i)) / weight;
      (distances[Math.min(a, i)] as Float64Array)[Math.max(a, i)] = mean;
    }
    for (const [i, j] of nearest.entries()) {
      if (clusters[i] === null || i > b) continue;
      if (j === a || j === b || (i < a && between(i, a) <= between(i, j))) nearest[i] = nearestAfter(i);
    }
  }
  return clusters.find((cluster) => cluster !== null) as Cluster;
}

/** The cluster, or where it has no block, the nearest ones below it that have. A cluster's blocks are in its children too. */
function relinked(top: Cluster): Cluster[] {
  const kept: Cluster[] = [];
  const pending = [top];
  for (let cluster = pending.pop(); cluster !== undefined; cluster = pending.pop()) {
    if (cluster.blocks.length > 0) kept.push(cluster);
    else pending.push(...cluster.children.toReversed());
  }
  return kept;
}

/** Parents before children, each behind its parent's blocks. */
function rowsOf(root: Cluster, nextId: number, now: number): ClusteredRows {
  const nodes: ClusterNode[] = [];
  const pending: { cluster: Cluster; parent: ClusterNode | null; position: number }[] = [
    { cluster: root, parent: null, position: 0 },
  ];
  for (let step = pending.shift(); step !== undefined; step = pending.shift()) {
    const { cluster, parent, position } = step;
    const row: ClusterNode = {
      id: (nextId + nodes.length) as NodeId,
      parent: parent?.id ?? null,
      blocks: alignTo(parent?.blocks ?? [], cluster.blocks),
      position,
      nextPosition: cluster.children.length,
      distance: cluster.distance,
      uses: cluster.tickets.length,
      lastUsed: cluster.tickets.length > 0 ? now : 0,
      tickets: cluster.tickets.slice(-MAX_TICKETS),
    };
    nodes.push(row);
    pending.push(...cluster.children.map((child, at) => ({ cluster: child, parent: row, position: at })));
  }
  return { nodes, nextId: nextId + nodes.length };
}
