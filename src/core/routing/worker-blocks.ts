import type { Label } from "../text/ids.js";
import { largest } from "../text/lists.js";

/** Maximum workers that a scope remembers, LRU. */
export const MAX_WORKERS = 64;
/** Maximum blocks remembered of one worker, LRU: what its cache may hold of one user. */
export const MAX_WORKER_BLOCKS = 2_000;

/** The blocks of a scope that one worker processed, as stored. */
export interface WorkerRow {
  readonly id: number;
  /** The caller's name for it. */
  readonly name: string;
  /** Distinct blocks, least recently processed first. */
  readonly labels: readonly Label[];
}

/** What changed since the last drain, to be stored in one transaction. */
export interface WorkerChanges {
  readonly upserted: readonly WorkerRow[];
  readonly removed: readonly number[];
}

/** Which workers processed which blocks of a scope, so that later prompts and batches are routed consistently. */
export class WorkerBlocks {
  /** In LRU order. */
  readonly #workers = new Map<string, { readonly id: number; readonly labels: Set<Label> }>();
  readonly #dirty = new Set<string>();
  readonly #removed = new Set<number>();
  #nextId: number;

  constructor(rows: readonly WorkerRow[]) {
    for (const { id, name, labels } of rows) this.#workers.set(name, { id, labels: new Set(labels) });
    this.#nextId =
      1 +
      largest(
        rows.map(({ id }) => id),
        0,
      );
  }

  get size(): number {
    return this.#workers.size;
  }

  /** Estimated bytes of memory. */
  get weight(): number {
    let weight = 0;
    for (const { labels } of this.#workers.values()) weight += 500 + 50 * labels.size;
    return weight;
  }

  /** The blocks that a worker processed; empty for an unknown worker. */
  of(name: string): ReadonlySet<Label> {
    return this.#workers.get(name)?.labels ?? new Set();
  }

  /** Records that a worker processes these blocks. */
  take(name: string, labels: readonly Label[]): void {
    const known = this.#workers.get(name);
    const processed = known?.labels ?? new Set();
    for (const label of labels) {
      processed.delete(label);
      processed.add(label);
    }
    for (const oldest of processed) {
      if (processed.size <= MAX_WORKER_BLOCKS) break;
      processed.delete(oldest);
    }
    // A new id per use preserves LRU order across a reload.
    if (known !== undefined) this.#remove(name, known.id);
    this.#workers.set(name, { id: this.#nextId++, labels: processed });
    this.#dirty.add(name);
    for (const [oldest, { id }] of this.#workers) {
      if (this.#workers.size <= MAX_WORKERS) break;
      this.#remove(oldest, id);
    }
  }

  /** Removes blocks whose text was forgotten. */
  forget(gone: ReadonlySet<Label>): void {
    for (const [name, { id, labels }] of [...this.#workers]) {
      const before = labels.size;
      for (const label of gone) labels.delete(label);
      if (labels.size === before) continue;
      if (labels.size === 0) this.#remove(name, id);
      else this.#dirty.add(name);
    }
  }

  /** Returns and resets what changed since the last call. */
  drain(): WorkerChanges {
    const changes = {
      upserted: [...this.#dirty].flatMap((name) => {
        const worker = this.#workers.get(name);
        return worker === undefined ? [] : [{ id: worker.id, name, labels: [...worker.labels] }];
      }),
      removed: [...this.#removed],
    };
    this.#dirty.clear();
    this.#removed.clear();
    return changes;
  }

  /** Everything it remembers, as stored, in LRU order; later changes do not reach it. */
  stored(): WorkerRow[] {
    return Array.from(this.#workers, ([name, { id, labels }]) => ({ id, name, labels: [...labels] }));
  }

  #remove(name: string, id: number): void {
    this.#workers.delete(name);
    this.#dirty.delete(name);
    this.#removed.add(id);
  }
}
