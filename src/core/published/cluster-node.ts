import type { Label, NodeId, TurnId } from "../text/ids.js";

/**
 * A node of the cluster tree, as stored. The root has no blocks. A leaf is one served context; an inner node has the blocks that its
 * contexts had in common when it was created. Node ids are unique within a scope's cluster tree.
 */
export interface ClusterNode {
  readonly id: NodeId;
  /** Null on the root only. */
  readonly parent: NodeId | null;
  /** Distinct blocks in prompt order; empty on the root only. */
  readonly blocks: readonly Label[];
  /** Child position under the parent, never reused; search paths consist of these. */
  readonly position: number;
  /** Position of the next new child. */
  readonly nextPosition: number;
  /** Context distance (eq. 1) of the two nodes merged into this one; 0 on leaves and on the root. */
  readonly distance: number;
  /** Requests with exactly these blocks; 0 on inner nodes, whose uses are the sum over their leaves. */
  readonly uses: number;
  /** Logical time of the last of them; 0 if there is none. */
  readonly lastUsed: number;
  /** The newest requests with exactly these blocks that are not evicted, oldest first; empty on inner nodes. */
  readonly tickets: readonly TurnId[];
}

/** The node that matches a context (Alg. 1). */
export interface ClusterMatch {
  /** The node's blocks; empty for no match. */
  readonly blocks: readonly Label[];
  /** Child positions from the root to the node. */
  readonly searchPath: readonly number[];
  /** Context distance between context and node; 1 for no match. */
  readonly distance: number;
  /** Number of computed distances: the cost of the search. */
  readonly examined: number;
}

/** What changed since the last drain, to be stored in one transaction. */
export interface ClusterChanges {
  readonly upserted: readonly ClusterNode[];
  readonly removed: readonly NodeId[];
}

/** A node with its search path, for display. */
export interface ClusterEntry {
  readonly id: NodeId;
  readonly searchPath: readonly number[];
  readonly blocks: readonly Label[];
  readonly distance: number;
  /** Requests that ended at leaves of this subtree. */
  readonly uses: number;
  /** Tickets of the leaves of this subtree. */
  readonly live: number;
  readonly lastUsed: number;
}
