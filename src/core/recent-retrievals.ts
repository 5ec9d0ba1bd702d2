import type { Label, TurnId } from "./ids.js";

/** Requests that are remembered; past it the oldest goes. Figures for other sizes: `docs/ordering.md`. */
export const RECENT_REQUESTS = 64;

/** What one request asked for, as it is stored. */
export interface RecentRetrieval {
  readonly turn: TurnId;
  /** Distinct blocks in relevance order. */
  readonly labels: readonly Label[];
}

/** What changed since the last drain, to be stored in one transaction. */
export interface RecentChanges {
  readonly upserted: readonly RecentRetrieval[];
  readonly removed: readonly TurnId[];
}

/** The block sets of the last {@link RECENT_REQUESTS} requests of a scope: what later requests will be like. */
export class RecentRetrievals {
  readonly #rows = new Map<TurnId, { readonly labels: readonly Label[]; readonly set: ReadonlySet<Label> }>();
  readonly #dirty = new Set<TurnId>();
  readonly #removed = new Set<TurnId>();

  constructor(rows: readonly RecentRetrieval[]) {
    for (const { turn, labels } of [...rows].sort((a, b) => a.turn - b.turn)) this.#put(turn, labels);
  }

  get size(): number {
    return this.#rows.size;
  }

  /** The block sets, oldest first. */
  *sets(): Iterable<ReadonlySet<Label>> {
    for (const { set } of this.#rows.values()) yield set;
  }

  /** Takes in what a request asked for. One that asked for nothing says nothing about others. */
  take(labels: readonly Label[], turn: TurnId): void {
    if (labels.length === 0) return;
    this.#put(turn, labels);
    this.#removed.delete(turn);
    this.#dirty.add(turn);
    const [oldest] = this.#rows.keys();
    if (this.#rows.size > RECENT_REQUESTS && oldest !== undefined) this.#remove(oldest);
  }

  /** These blocks' text is gone: no request asked for them any more. */
  forget(gone: ReadonlySet<Label>): void {
    for (const [turn, { labels }] of [...this.#rows]) {
      const left = labels.filter((label) => !gone.has(label));
      if (left.length === labels.length) continue;
      if (left.length === 0) {
        this.#remove(turn);
        continue;
      }
      this.#put(turn, left);
      this.#dirty.add(turn);
    }
  }

  /** Hands over what changed since the last call. */
  drain(): RecentChanges {
    const changes = {
      upserted: [...this.#dirty].map((turn) => ({ turn, labels: this.#rows.get(turn)?.labels ?? [] })),
      removed: [...this.#removed],
    };
    this.#dirty.clear();
    this.#removed.clear();
    return changes;
  }

  #put(turn: TurnId, labels: readonly Label[]): void {
    this.#rows.set(turn, { labels, set: new Set(labels) });
  }

  #remove(turn: TurnId): void {
    this.#rows.delete(turn);
    this.#dirty.delete(turn);
    this.#removed.add(turn);
  }
}
