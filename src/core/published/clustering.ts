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

/** Rows that a cluster tree loads. */
export interface ClusteredRows {
  readonly nodes: readonly ClusterNode[];
  readonly nextId: number;
}

/** Maximum connected contexts (directly or through others) that are clustered exactly: more take over 0.6 GB. */
const MAX_EXACT_CONTEXTS = 12_000;
/**
 * Larger components are clustered in parts of at most this size, which reuse no less (docs/internals/ordering-trials.md, "Alg. 4 at
 * scale").
 */
const PART_CONTEXTS = 1_000;

export interface ClusteringOptions {
  /** Maximum distinct connected contexts that are clustered exactly. */
  readonly maxExact?: number | undefined;
  /** Size of the parts beyond that. */
  readonly partSize?: number | undefined;
}

interface Cluster {
  readonly blocks: readonly Label[];
  readonly children: readonly Cluster[];
  readonly distance: number;
  /** Empty on inner nodes. */
  readonly tickets: readonly TurnId[];
}

/**
 * Builds the cluster tree of a known set of contexts (Alg. 4): average linkage over eq. 1, an inner node for what two clusters have in
 * common, then every node's blocks aligned with its parent's, from the root down. Contexts with the same blocks share a leaf. Nodes without
 * blocks are dropped and their children move up, in the order of their oldest contexts. Empty contexts are ignored. Ids count from
 * `nextId`; every leaf's last use is `now`.
 *
 * Contexts that are not connected by shared blocks are never merged, because the merged node would be dropped: one user's clusters do not
 * depend on another's. O(N²) time and 4·N² bytes for N distinct connected contexts; more than `maxExact` are clustered in parts,
 * approximately.
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
 * Merges the clusters of a part that have blocks in common, each at the index of its oldest context. A merge without common blocks is
 * skipped, and so is every merge on top of it, which would have none either.
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

/** Parents before children, each aligned with its parent's blocks. */
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
