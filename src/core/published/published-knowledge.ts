/* published: ContextPilot, RAGCache++ and CRAFT. Enters: blocks of a request or a batch. Leaves: an order, and state created on first use. */

import type { EvictedPath, EvictionFollower } from "../cache/context-index.js";
import {
  alignTo,
  labelsOf,
  type Ordering,
  type OrderingPolicy,
  type OrderingRequest,
  type ScopeKnowledge,
  withoutCarried,
} from "../ordering/ordering.js";
import { walkGreedily } from "../ordering/prefix-search.js";
import type { RowChanges } from "../text/collections.js";
import type { Label, NodeId, TurnId } from "../text/ids.js";
import { type Access, AccessWindow } from "./access-frequency.js";
import { type ClusterNode, ClusterTree } from "./cluster-tree.js";

export interface PublishedRows {
  readonly clusters: readonly ClusterNode[];
  readonly accesses: readonly Access[];
}

export const NO_PUBLISHED_ROWS: PublishedRows = { clusters: [], accesses: [] };

/** To be stored in one transaction. */
export interface PublishedChanges {
  readonly clusters: RowChanges<NodeId, ClusterNode>;
  readonly accesses: RowChanges<TurnId, Access>;
}

export interface WithPublished extends ScopeKnowledge {
  readonly published: PublishedKnowledge;
}

export type ScopePolicy = OrderingPolicy<WithPublished>;

/** The published policies' state of one scope. */
export class PublishedKnowledge implements EvictionFollower {
  /** Grows only with requests of `context-pilot`. */
  readonly clusters: ClusterTree;
  /** Grows only with requests of CRAFT's policies. */
  readonly accesses: AccessWindow;

  /** @param maxNodes maximum nodes of the cluster tree; LRU leaves are evicted */
  constructor({ clusters, accesses }: PublishedRows, maxNodes: number) {
    this.clusters = new ClusterTree(clusters, maxNodes);
    this.accesses = new AccessWindow(accesses);
  }

  get isEmpty(): boolean {
    return this.clusters.size === 0 && this.accesses.size === 0;
  }

  evicted(path: EvictedPath): void {
    this.clusters.evicted(path);
    this.accesses.evicted(path);
  }

  forget(gone: ReadonlySet<Label>): void {
    this.clusters.forget(gone);
    this.accesses.forget(gone);
  }

  get weight(): number {
    return 1_000 * this.clusters.size + 600 * this.accesses.size;
  }

  drain(): PublishedChanges {
    return { clusters: this.clusters.drain(), accesses: this.accesses.drain() };
  }

  stored(): PublishedRows {
    return { clusters: this.clusters.stored(), accesses: this.accesses.stored() };
  }
}

/** ContextPilot (Alg. 1 and 2): retrieved blocks of the best cluster node, then the rest by relevance. Matches sets, not the cached prefix. */
export const contextPilot: OrderingPolicy<WithPublished> = {
  name: "context-pilot",
  order({ retrieved }, { published: { clusters } }) {
    const context = labelsOf(retrieved);
    const { blocks, searchPath } = clusters.search(context);
    return withoutCarried(alignTo(blocks, context), searchPath);
  },
  learn({ retrieved }, _ordering, { published: { clusters } }, turn) {
    // Turn ids ascend in compose order: a logical clock.
    clusters.insert(labelsOf(retrieved), turn);
  },
};

/** RAGCache++'s knowledge tree (its Alg. 1): a greedy walk to the best-ranked child, then the rest by relevance. Can miss a longer prefix. */
export const knowledgeTree: OrderingPolicy = {
  name: "knowledge-tree",
  order({ anchor, retrieved }, { index }) {
    const context = labelsOf(retrieved);
    const { labels, searchPath } = walkGreedily(index.root(anchor), new Set(context));
    return withoutCarried(alignTo(labels, context), searchPath);
  },
};

/** CRAFT's permutation by its CA-Table, descending; ties in relevance order. */
export const accessFrequency: OrderingPolicy<WithPublished> = {
  name: "access-frequency",
  order: ({ retrieved }, { published: { accesses } }) => withoutCarried(accesses.byFrequency(labelsOf(retrieved))),
  learn: takeIn,
};

/** Along CRAFT's CP-Tree, then by access count. Not CRAFT's order, which only looks up there. */
export const cpTree: OrderingPolicy<WithPublished> = {
  name: "cp-tree",
  order: ({ retrieved }, { published: { accesses } }) => withoutCarried(accesses.alongPrefixes(labelsOf(retrieved))),
  learn: takeIn,
};

function takeIn(_: OrderingRequest, { labels }: Ordering, { published }: WithPublished, turn: TurnId): void {
  published.accesses.take(labels, turn);
}
