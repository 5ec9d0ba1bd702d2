/*
 * published: the papers' policies and planners, the baselines of memprefix's own. ContextPilot (context distance, clustering, cluster tree,
 * schedule), RAGCache++ (knowledge tree), CRAFT (access frequency, CP-Tree).
 * Enters: the blocks of a request or a batch. Leaves: an order. Their per-scope state is created when a scope first uses one of them: other
 * scopes read, size and write nothing of it.
 */

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
import { largest, NO_ROWS_CHANGED, type RowChanges } from "../text/collections.js";
import type { Label, NodeId, TurnId } from "../text/ids.js";
import { type Access, AccessWindow } from "./access-frequency.js";
import { type ClusterNode, ClusterTree } from "./cluster-tree.js";

/** A scope's stored rows of the published policies. */
export interface PublishedRows {
  readonly clusters: readonly ClusterNode[];
  readonly accesses: readonly Access[];
}

export const NO_PUBLISHED_ROWS: PublishedRows = { clusters: [], accesses: [] };

/** What changed since the last drain, to be stored in one transaction. */
export interface PublishedChanges {
  readonly clusters: RowChanges<NodeId, ClusterNode>;
  readonly accesses: RowChanges<TurnId, Access>;
}

/** The knowledge of the published policies: that of all policies, and their own. */
export interface WithPublished extends ScopeKnowledge {
  readonly published: PublishedKnowledge;
}

/** A policy of a scope, whatever knowledge it reads. */
export type ScopePolicy = OrderingPolicy<WithPublished>;

/** The published policies' state of one scope; each part is built on first use. */
export class PublishedKnowledge {
  #clusters: ClusterTree | null = null;
  #accesses: AccessWindow | null = null;

  /** @param maxNodes maximum nodes of the cluster tree; LRU leaves are evicted */
  constructor(
    private readonly rows: PublishedRows,
    private readonly maxNodes: number,
  ) {}

  /** Grows with requests of the policy `context-pilot` only. */
  get clusters(): ClusterTree {
    if (this.#clusters !== null) return this.#clusters;
    const { clusters } = this.rows;
    const ids = clusters.map(({ id }) => id);
    this.#clusters = new ClusterTree(clusters, largest(ids, 0) + 1, this.maxNodes);
    return this.#clusters;
  }

  /** Grows with requests of CRAFT's policies only. */
  get accesses(): AccessWindow {
    this.#accesses ??= new AccessWindow(this.rows.accesses);
    return this.#accesses;
  }

  /**
   * Search paths of requests that come one after the other, none of them served yet: each searches a copy of the cluster tree and is taken
   * into it (Alg. 1), as Alg. 5 schedules them. Empty for a context without blocks.
   */
  pathsOf(contexts: readonly (readonly Label[])[]): readonly (readonly number[])[] {
    const { clusters } = this;
    const tree = new ClusterTree(clusters.stored(), clusters.nextId, this.maxNodes);
    return contexts.map((context, at) => {
      // Served requests have tickets from 1 up.
      const ticket = (-1 - at) as TurnId;
      tree.insert(context, ticket, Number.MAX_SAFE_INTEGER);
      return tree.pathOf(ticket) ?? [];
    });
  }

  /** The engine evicted a request's prefix. */
  evict(turn: TurnId): void {
    const { clusters, accesses } = this.#grown();
    clusters?.evict(turn);
    accesses?.evict(turn);
  }

  /** Removes blocks whose text was forgotten. */
  forget(gone: ReadonlySet<Label>): void {
    const { clusters, accesses } = this.#grown();
    clusters?.forget(gone);
    accesses?.forget(gone);
  }

  /** Throws if stored rows are not a tree. */
  check(): void {
    this.#grown().clusters?.check();
  }

  /** Estimated bytes of memory. */
  get weight(): number {
    return 1_000 * (this.#clusters?.size ?? 0) + 600 * (this.#accesses?.size ?? 0);
  }

  /** Returns and resets what changed since the last call; null for nothing. */
  drain(): PublishedChanges | null {
    if (this.#clusters === null && this.#accesses === null) return null;
    return {
      clusters: this.#clusters?.drain() ?? NO_ROWS_CHANGED,
      accesses: this.#accesses?.drain() ?? NO_ROWS_CHANGED,
    };
  }

  /** Everything it holds, as stored. */
  stored(): PublishedRows {
    return {
      clusters: this.#clusters?.stored() ?? this.rows.clusters,
      accesses: this.#accesses?.stored() ?? this.rows.accesses,
    };
  }

  /** The parts that were used or have stored rows. */
  #grown(): { readonly clusters: ClusterTree | null; readonly accesses: AccessWindow | null } {
    const { rows } = this;
    return {
      clusters: rows.clusters.length > 0 ? this.clusters : this.#clusters,
      accesses: rows.accesses.length > 0 ? this.accesses : this.#accesses,
    };
  }
}

/**
 * ContextPilot (Alg. 1 and 2): first the retrieved ones among the blocks of the best matching cluster node, then the rest in relevance order;
 * relevance order if nothing matches. It matches sets of blocks, not the prefix in the engine's cache.
 */
export const contextPilot: OrderingPolicy<WithPublished> = {
  name: "context-pilot",
  order({ retrieved }, { published: { clusters } }) {
    const context = labelsOf(retrieved);
    const { blocks, searchPath } = clusters.search(context);
    return withoutCarried(alignTo(blocks, context), searchPath);
  },
  learn({ retrieved }, _ordering, { published: { clusters } }, turn) {
    // Turn ids ascend in compose order: a logical clock.
    clusters.insert(labelsOf(retrieved), turn, turn);
  },
};

/**
 * RAGCache++'s knowledge tree (its Alg. 1): a greedy walk over the served sequences, at each node to the child of the best-ranked block, then the
 * rest in relevance order. Cheaper than the exact search of `prefix-exact`, but can miss a longer prefix.
 */
export const knowledgeTree: OrderingPolicy = {
  name: "knowledge-tree",
  order({ anchor, retrieved }, { index }) {
    const context = labelsOf(retrieved);
    const { labels, searchPath } = walkGreedily(index.root(anchor), new Set(context));
    return withoutCarried(alignTo(labels, context), searchPath);
  },
};

/** CRAFT's permutation by its CA-Table: blocks by access count over the last requests, descending; ties in relevance order. */
export const accessFrequency: OrderingPolicy<WithPublished> = {
  name: "access-frequency",
  order: ({ retrieved }, { published: { accesses } }) => withoutCarried(accesses.byFrequency(labelsOf(retrieved))),
  learn: takeIn,
};

/** Not CRAFT's order: along its CP-Tree, the prefixes of frequently accessed blocks, then the rest by access count. CRAFT only looks up there. */
export const cpTree: OrderingPolicy<WithPublished> = {
  name: "cp-tree",
  order: ({ retrieved }, { published: { accesses } }) => withoutCarried(accesses.alongPrefixes(labelsOf(retrieved))),
  learn: takeIn,
};

function takeIn(_: OrderingRequest, { labels }: Ordering, { published }: WithPublished, turn: TurnId): void {
  published.accesses.take(labels, turn);
}
