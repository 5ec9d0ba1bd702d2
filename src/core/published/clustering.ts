import { contextComponents } from "../batch/context-components.js";
import { contextParts } from "../batch/context-parts.js";
import { alignTo, blocksKey, intersectionOf } from "../ordering/alignment.js";
import type { Label, NodeId, TurnId } from "../text/ids.js";
import { groupBy } from "../text/lists.js";
import { averageLinkage } from "./average-linkage.js";
import type { ClusterNode } from "./cluster-node.js";
import { MAX_TICKETS } from "./cluster-tree.js";

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

/** Contexts that hang together, directly or through others, and are clustered exactly: more would take more than 0.6 GB. */
const MAX_EXACT_CONTEXTS = 12_000;
/** Larger ones are clustered in parts of at most so many, which reuse no less (docs/internals/ordering-trials.md, "Alg. 4 at scale"). */
const PART_CONTEXTS = 1_000;

export interface ClusteringOptions {
  /** Distinct contexts that hang together are clustered exactly up to this many. */
  readonly maxExact?: number | undefined;
  /** Beyond that, at most so many at a time. */
  readonly partSize?: number | undefined;
}

interface Cluster {
  readonly blocks: readonly Label[];
  readonly children: readonly Cluster[];
  readonly distance: number;
  /** On leaves only. */
  readonly tickets: readonly TurnId[];
}

/**
 * Builds a cluster tree of contexts that are all known (Alg. 4): average linkage over eq. 1, a node for what two clusters have in
 * common, and from the top down every node's blocks behind its parent's. Contexts of the same blocks share a leaf; nodes with
 * nothing in common go and their children move up, in the order of their oldest contexts; empty contexts are left out. Ids count from
 * `nextId`; every leaf was last used at `now`.
 *
 * Contexts that share no block, not even through others, are never merged, as such a node would go: what one user's contexts make
 * does not depend on another's. O(N²) time, 4·N² bytes for the N distinct contexts that hang together; those are clustered in parts,
 * approximately, where they are more than `maxExact`.
 */
export function clusterContexts(
  contexts: readonly TicketedContext[],
  nextId: number,
  now: number,
  { maxExact = MAX_EXACT_CONTEXTS, partSize = PART_CONTEXTS }: ClusteringOptions = {},
): ClusteredRows {
  const identical = groupBy(
    contexts.filter(({ blocks }) => blocks.length > 0),
    ({ blocks }) => blocksKey(blocks),
  );
  const leaves = [...identical.values()].map((group): Cluster => {
    const tickets = group.map(({ ticket }) => ticket);
    return { blocks: group[0]?.blocks ?? [], children: [], distance: 0, tickets };
  });
  if (leaves.length === 0) return { nodes: [], nextId };
  const blocks = leaves.map((leaf) => leaf.blocks);
  const clusters: (Cluster | null)[] = [...leaves];
  for (const component of contextComponents(blocks)) {
    const parts = component.length > maxExact ? contextParts(blocks, component, partSize) : [component];
    for (const part of parts) mergeNearest(clusters, part);
  }
  const children = clusters.filter((cluster) => cluster !== null);
  return rowsOf({ blocks: [], children, distance: 0, tickets: [] }, nextId, now);
}

/**
 * Merges those of a part that have something in common. A cluster stands where its oldest context does. What is merged with a cluster
 * that has nothing in common has nothing in common either, so both stay as they are.
 */
function mergeNearest(clusters: (Cluster | null)[], part: readonly number[]): void {
  const open = new Set(part);
  for (const { first, second, distance } of averageLinkage(part.map((at) => clusters[at]?.blocks ?? []))) {
    const [a, b] = [part[first] as number, part[second] as number];
    const [one, other] = [clusters[a], clusters[b]];
    const isOpen = open.has(a) && open.has(b) && one != null && other != null;
    const blocks = isOpen ? intersectionOf(one.blocks, other.blocks) : [];
    if (isOpen && blocks.length > 0) {
      clusters[a] = { blocks, children: [one, other], distance, tickets: [] };
      clusters[b] = null;
    } else {
      open.delete(a);
    }
    open.delete(b);
  }
}

/** Parents before children, each behind its parent's blocks. */
function rowsOf(root: Cluster, nextId: number, now: number): ClusteredRows {
  const nodes: ClusterNode[] = [];
  const pending: { cluster: Cluster; parent: ClusterNode | null; position: number }[] = [
    { cluster: root, parent: null, position: 0 },
  ];
  for (const { cluster, parent, position } of pending) {
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
    for (const [at, child] of cluster.children.entries()) pending.push({ cluster: child, parent: row, position: at });
  }
  return { nodes, nextId: nextId + nodes.length };
}
