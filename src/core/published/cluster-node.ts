import type { Label, NodeId, TurnId } from "../text/ids.js";

/**
 * A node of the cluster tree, as it is stored. The root stands for no block. A leaf is one context that was served; every other
 * node has what the contexts below it had in common when it was made. Node ids are the cluster tree's own, unique within a scope.
 */
export interface ClusterNode {
  readonly id: NodeId;
  /** Null on the root only. */
  readonly parent: NodeId | null;
  /** Distinct blocks in prompt order; empty on the root only. */
  readonly blocks: readonly Label[];
  /** Child position under the parent, never given twice; search paths are made of these. */
  readonly position: number;
  /** Position that the next child gets. */
  readonly nextPosition: number;
  /** Context distance (eq. 1) of what was merged into this node; 0 on leaves and on the root. */
  readonly distance: number;
  /** Requests for exactly these blocks. Leaves only: another node's is the sum over its leaves, and 0 here. */
  readonly uses: number;
  /** Logical time of the last of them, 0 where `uses` is. */
  readonly lastUsed: number;
  /** The newest requests for exactly these blocks that were not evicted, oldest first; empty on all but leaves. */
  readonly tickets: readonly TurnId[];
}

/** The node that a context belongs to (Alg. 1). */
export interface ClusterMatch {
  /** The node's blocks; empty where none matched. */
  readonly blocks: readonly Label[];
  /** Child positions from the root to the node. */
  readonly searchPath: readonly number[];
  /** Context distance from the context to the node; 1 where none matched. */
  readonly distance: number;
  /** Nodes whose distance was computed: what the search cost. */
  readonly examined: number;
}

/** What changed since the last drain, to be stored in one transaction. */
export interface ClusterChanges {
  readonly upserted: readonly ClusterNode[];
  readonly removed: readonly NodeId[];
}

/** A node with its search path, for people. */
export interface ClusterEntry {
  readonly id: NodeId;
  readonly searchPath: readonly number[];
  readonly blocks: readonly Label[];
  readonly distance: number;
  /** Requests that ended at leaves here or below. */
  readonly uses: number;
  /** Requests that are named by leaves here or below. */
  readonly live: number;
  readonly lastUsed: number;
}
