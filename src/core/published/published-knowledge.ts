/*
 * published: policies and planners of the papers, which ours are measured against. ContextPilot (context distance, clustering, cluster tree,
 * schedule), RAGCache++ (knowledge tree), CRAFT (access frequency, CP-Tree).
 * Enters: a request's blocks, or a batch's. Leaves: an order. What they keep per scope is made when one of them is first asked for there: a
 * scope that never asks reads, sizes and writes nothing of it.
 */

import type { OrderingPolicy, ScopeKnowledge } from "../ordering/ordering.js";
import type { Label, TurnId } from "../text/ids.js";
import { largest } from "../text/lists.js";
import { type Access, type AccessChanges, AccessWindow } from "./access-frequency.js";
import type { ClusterChanges, ClusterNode } from "./cluster-node.js";
import { ClusterTree } from "./cluster-tree.js";

/** Where a scope's stored rows of the published policies are read from; asked at most once each. */
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

/** What the published policies order by, beside what all policies do. */
export interface WithPublished extends ScopeKnowledge {
  readonly published: PublishedKnowledge;
}

/** A policy that a scope can order by, whatever it reads. */
export type ScopePolicy = OrderingPolicy<WithPublished>;

/** The published policies' state of one scope, each part read from its rows when it is first needed. */
export class PublishedKnowledge {
  #clusters: ClusterTree | null = null;
  #accesses: AccessWindow | null = null;

  /** @param maxNodes most nodes of the cluster tree; past it the least recently used go */
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

  /** The engine dropped a request's cache. */
  evict(turn: TurnId): void {
    this.#openStored();
    this.#clusters?.evict(turn);
  }

  /** These blocks' text is gone. */
  forget(gone: ReadonlySet<Label>): void {
    this.#openStored();
    this.#clusters?.forget(gone);
    this.#accesses?.forget(gone);
  }

  /** Throws where stored rows are no tree. */
  check(): void {
    this.#openStored();
    this.#clusters?.check();
  }

  /** Bytes of memory, roughly. */
  get weight(): number {
    return 1_000 * (this.#clusters?.size ?? 0) + 600 * (this.#accesses?.size ?? 0);
  }

  /** Hands over what changed since the last call; null for nothing. */
  drain(): PublishedChanges | null {
    if (this.#clusters === null && this.#accesses === null) return null;
    return {
      clusters: this.#clusters?.drain() ?? NOTHING_CHANGED,
      accesses: this.#accesses?.drain() ?? NOTHING_CHANGED,
    };
  }

  /** Opens what has rows; a scope that has none is not asked again: rows come into being only by what is open. */
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
