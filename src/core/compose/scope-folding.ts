import { hasNoText } from "../blocks/block-register.js";
import type { MemoryVersion, RegisterChanges, StoredBlock, StoredRegister } from "../blocks/context-block.js";
import type { Access } from "../published/access-frequency.js";
import type { ClusterNode } from "../published/cluster-tree.js";
import type { Label, MemoryId, NodeId, TurnId } from "../text/ids.js";
import type { ScopeChanges, StoredScope } from "./scope-state.js";

/** Rows of one kind that changed. */
interface RowChanges<Key, Row> {
  readonly upserted: readonly Row[];
  readonly removed: readonly Key[];
}

/** Rows of one kind by their key. */
class FoldedRows<Key extends number, Row> {
  readonly #rows = new Map<Key, Row>();

  constructor(
    rows: readonly Row[],
    private readonly keyOf: (row: Row) => Key,
  ) {
    for (const row of rows) this.#rows.set(keyOf(row), row);
  }

  take({ upserted, removed }: RowChanges<Key, Row>): void {
    for (const key of removed) this.#rows.delete(key);
    for (const row of upserted) this.#rows.set(this.keyOf(row), row);
  }

  /** By key: the order in which the parts of a scope's state expect their rows. */
  rows(): Row[] {
    return [...this.#rows.values()].sort((a, b) => this.keyOf(a) - this.keyOf(b));
  }
}

/** The blocks and memories of a scope. */
class FoldedRegister {
  readonly #blocks: FoldedRows<Label, StoredBlock>;
  readonly #versions = new Map<MemoryId, Map<Label, MemoryVersion>>();
  /** Memories that have or had each block's text, and maybe more. */
  readonly #holders = new Map<Label, Set<MemoryId>>();
  readonly #forgotten: Set<MemoryId>;

  constructor({ blocks, versions, forgotten }: StoredRegister) {
    this.#blocks = new FoldedRows(blocks, ({ label }) => label);
    this.#forgotten = new Set(forgotten);
    for (const version of versions) this.#hold(version);
  }

  take({ blocks, versions, removedBlocks, forgotten }: RegisterChanges): void {
    this.#blocks.take({ upserted: blocks, removed: removedBlocks });
    for (const label of removedBlocks) this.#drop(label);
    for (const id of forgotten) {
      this.#versions.delete(id);
      this.#forgotten.add(id);
    }
    for (const version of versions) this.#hold(version);
  }

  stored(): StoredRegister {
    const versions = [...this.#versions.values()].flatMap((all) => [...all.values()]);
    return { blocks: this.#blocks.rows(), versions, forgotten: [...this.#forgotten] };
  }

  #hold(version: MemoryVersion): void {
    const { memoryId, label } = version;
    const versions = this.#versions.get(memoryId);
    if (versions === undefined) this.#versions.set(memoryId, new Map([[label, version]]));
    else versions.set(label, version);
    const holders = this.#holders.get(label);
    if (holders === undefined) this.#holders.set(label, new Set([memoryId]));
    else holders.add(memoryId);
  }

  #drop(label: Label): void {
    for (const id of this.#holders.get(label) ?? []) {
      const versions = this.#versions.get(id);
      versions?.delete(label);
      if (versions !== undefined && hasNoText(versions)) this.#versions.delete(id);
    }
    this.#holders.delete(label);
  }
}

/**
 * Builds a scope's state from an earlier one and the changes since, one after the other: what a store that keeps them gives at the next
 * load. Costs O(earlier state + all changes); takes any changes, and shares rows with what it was given.
 */
export class ScopeFolding {
  readonly #register: FoldedRegister;
  readonly #nodes: FoldedRows<number, StoredScope["nodes"][number]>;
  readonly #recent: FoldedRows<number, StoredScope["recent"][number]>;
  readonly #workers: FoldedRows<number, StoredScope["workers"][number]>;
  readonly #clusters: FoldedRows<NodeId, ClusterNode>;
  readonly #accesses: FoldedRows<TurnId, Access>;
  #counts: Pick<StoredScope, "counters" | "bankedTokens">;

  constructor(before: StoredScope) {
    const { counters, bankedTokens, register, nodes, recent, workers, published } = before;
    this.#counts = { counters, bankedTokens };
    this.#register = new FoldedRegister(register);
    this.#nodes = new FoldedRows(nodes, ({ id }) => id);
    this.#recent = new FoldedRows(recent, ({ turn }) => turn);
    this.#workers = new FoldedRows(workers, ({ id }) => id);
    this.#clusters = new FoldedRows(published.clusters, ({ id }) => id);
    this.#accesses = new FoldedRows(published.accesses, ({ turn }) => turn);
  }

  /** Adds the next changes. */
  take({ counters, bankedTokens, register, index, recent, workers, published }: ScopeChanges): void {
    this.#counts = { counters, bankedTokens };
    this.#register.take(register);
    this.#nodes.take(index);
    this.#recent.take(recent);
    this.#workers.take(workers);
    if (published === null) return;
    this.#clusters.take(published.clusters);
    this.#accesses.take(published.accesses);
  }

  /** The state after all changes so far. */
  stored(): StoredScope {
    return {
      ...this.#counts,
      register: this.#register.stored(),
      nodes: this.#nodes.rows(),
      recent: this.#recent.rows(),
      workers: this.#workers.rows(),
      published: { clusters: this.#clusters.rows(), accesses: this.#accesses.rows() },
    };
  }
}
