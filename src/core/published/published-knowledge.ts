/*
 * published: the papers' policies and planners, the baselines of memstem's own. ContextPilot (context distance, clustering, cluster tree,
 * schedule), RAGCache++ (knowledge tree), CRAFT (access frequency, CP-Tree).
 * Enters: the blocks of a request or a batch. Leaves: an order. Their per-scope state is created when a scope first uses one of them: other
 * scopes read, size and write nothing of it.
 */

import type { OrderingPolicy, ScopeKnowledge } from "../ordering/ordering.js";
import type { Label, TurnId } from "../text/ids.js";
import { largest } from "../text/lists.js";
import { type Access, type AccessChanges, AccessWindow } from "./access-frequency.js";
import type { ClusterChanges, ClusterNode } from "./cluster-node.js";
import { ClusterTree } from "./cluster-tree.js";

/** Reads a scope's stored rows of the published policies; each is called at most once. */
export interface PublishedRows {
  clusters(): readonly ClusterNode[];
  accesses(): readonly Access[];
}

export const NO_PUBLISHED_ROWS: PublishedRows = { clusters: () => [], accesses: () => [] };

/** What changed since the last drain, to be stored in one transaction. */
export interface PublishedChanges {
  readonly clusters: ClusterChanges;
  readonly accesses: AccessChanges;
}

/** The knowledge of the published policies: that of all policies, and their own. */
export interface WithPublished extends ScopeKnowledge {
  readonly published: PublishedKnowledge;
}

/** A policy of a scope, whatever knowledge it reads. */
export type ScopePolicy = OrderingPolicy<WithPublished>;

/** The published policies' state of one scope; each part is read from its rows on first use. */
export class PublishedKnowledge {
  #clusters: ClusterTree | null = null;
  #accesses: AccessWindow | null = null;

  /** @param maxNodes maximum nodes of the cluster tree; LRU leaves are evicted */
  constructor(
    private rows: PublishedRows,
    private readonly maxNodes: number,
  ) {}

  /** Grows with requests of the policy `context-pilot` only. */
  get clusters(): ClusterTree {
    this.#clusters ??= this.#treeOf(this.rows.clusters());
    return this.#clusters;
  }

  /** Grows with requests of CRAFT's policies only. */
  get accesses(): AccessWindow {
    this.#accesses ??= new AccessWindow(this.rows.accesses());
    return this.#accesses;
  }

  /** The engine evicted a request's prefix. */
  evict(turn: TurnId): void {
    this.#openStored();
    this.#clusters?.evict(turn);
  }

  /** Removes blocks whose text was forgotten. */
  forget(gone: ReadonlySet<Label>): void {
    this.#openStored();
    this.#clusters?.forget(gone);
    this.#accesses?.forget(gone);
  }

  /** Throws if stored rows are not a tree. */
  check(): void {
    this.#openStored();
    this.#clusters?.check();
  }

  /** Estimated bytes of memory. */
  get weight(): number {
    return 1_000 * (this.#clusters?.size ?? 0) + 600 * (this.#accesses?.size ?? 0);
  }

  /** Returns and resets what changed since the last call; null for nothing. */
  drain(): PublishedChanges | null {
    if (this.#clusters === null && this.#accesses === null) return null;
    return {
      clusters: this.#clusters?.drain() ?? NOTHING_CHANGED,
      accesses: this.#accesses?.drain() ?? NOTHING_CHANGED,
    };
  }

  /** Everything it holds, as stored; parts that were not used stay unread in memory, and are read here. */
  stored(): PublishedRows {
    const clusters = this.#clusters?.stored() ?? this.rows.clusters();
    const accesses = this.#accesses?.stored() ?? this.rows.accesses();
    const rows = { clusters: () => clusters, accesses: () => accesses };
    // Rows are read once.
    if (this.rows !== NO_PUBLISHED_ROWS) this.rows = rows;
    return rows;
  }

  /** Loads parts that have stored rows. Rows are read once: later ones can only be written by loaded parts. */
  #openStored(): void {
    const { rows } = this;
    this.rows = NO_PUBLISHED_ROWS;
    if (this.#clusters === null) {
      const stored = rows.clusters();
      if (stored.length > 0) this.#clusters = this.#treeOf(stored);
    }
    if (this.#accesses === null) {
      const stored = rows.accesses();
      if (stored.length > 0) this.#accesses = new AccessWindow(stored);
    }
  }

  #treeOf(stored: readonly ClusterNode[]): ClusterTree {
    const last = largest(
      stored.map(({ id }) => id),
      0,
    );
    return new ClusterTree(stored, last + 1, this.maxNodes);
  }
}

const NOTHING_CHANGED = { upserted: [], removed: [] };
