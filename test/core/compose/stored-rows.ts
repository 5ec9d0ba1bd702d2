import type { MemoryVersion, StoredBlock } from "../../../src/core/blocks/context-block.js";
import type { IndexNode } from "../../../src/core/cache/context-index.js";
import {
  FIRST_COUNTERS,
  type ScopeChanges,
  type ScopeCounters,
  type StoredScope,
} from "../../../src/core/compose/scope-state.js";
import type { RecentRetrieval } from "../../../src/core/ordering/ordering.js";
import type { Access } from "../../../src/core/published/access-frequency.js";
import type { ClusterNode } from "../../../src/core/published/cluster-tree.js";
import type { WorkerRow } from "../../../src/core/routing/worker-routing.js";
import type { Label, MemoryId, NodeId, TurnId } from "../../../src/core/text/ids.js";

/** What a store keeps of one scope: drained changes applied to rows, which come back ordered by their primary keys. */
export class StoredRows {
  readonly #blocks = new Map<Label, StoredBlock>();
  readonly #versions = new Map<string, MemoryVersion>();
  readonly #forgotten = new Set<MemoryId>();
  readonly #nodes = new Map<NodeId, IndexNode>();
  readonly #clusters = new Map<NodeId, ClusterNode>();
  readonly #workers = new Map<number, WorkerRow>();
  readonly #recent = new Map<TurnId, RecentRetrieval>();
  readonly #accesses = new Map<TurnId, Access>();
  #counters: ScopeCounters = FIRST_COUNTERS;
  #bankedTokens = 0;

  apply(changes: ScopeChanges): void {
    const { register, index, counters, recent, published, workers } = structuredClone(changes);
    this.#counters = counters;
    this.#bankedTokens = changes.bankedTokens;
    for (const block of register.blocks) this.#blocks.set(block.label, block);
    for (const version of register.versions) this.#versions.set(`${version.memoryId} ${version.label}`, version);
    for (const label of register.removedBlocks) this.#blocks.delete(label);
    for (const id of register.forgotten) {
      this.#forgotten.add(id);
      for (const [key, version] of this.#versions) if (version.memoryId === id) this.#versions.delete(key);
    }
    for (const node of index.upserted) this.#nodes.set(node.id, node);
    for (const id of index.removed) this.#nodes.delete(id);
    for (const row of workers.upserted) this.#workers.set(row.id, row);
    for (const id of workers.removed) this.#workers.delete(id);
    for (const row of recent.upserted) this.#recent.set(row.turn, structuredClone(row));
    for (const turn of recent.removed) this.#recent.delete(turn);
    const { clusters, accesses } = published;
    for (const node of clusters.upserted) this.#clusters.set(node.id, structuredClone(node));
    for (const id of clusters.removed) this.#clusters.delete(id);
    for (const row of accesses.upserted) this.#accesses.set(row.turn, structuredClone(row));
    for (const turn of accesses.removed) this.#accesses.delete(turn);
  }

  load(): StoredScope {
    const rows = structuredClone({
      counters: this.#counters,
      bankedTokens: this.#bankedTokens,
      register: {
        blocks: [...this.#blocks.values()].sort((a, b) => a.label - b.label),
        versions: [...this.#versions].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, version]) => version),
        forgotten: [...this.#forgotten].sort(),
      },
      nodes: [...this.#nodes.values()].sort((a, b) => a.id - b.id),
      recent: [...this.#recent.values()],
      workers: [...this.#workers.values()].sort((a, b) => a.id - b.id),
    });
    return {
      ...rows,
      published: {
        clusters: structuredClone([...this.#clusters.values()].sort((a, b) => a.id - b.id)),
        accesses: structuredClone([...this.#accesses.values()]),
      },
    };
  }
}
