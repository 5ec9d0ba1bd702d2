import type { Label, TurnId } from "../text/ids.js";

/** How often the turns of a conversation retrieved the same blocks again: predicts how many blocks of a later retrieval will be new. */
export class SeenRetrievals {
  readonly #counts = new Map<Label, number>();
  #turns = 0;
  #again = 0;
  #pairs = 0;

  /** Turns recorded. */
  get turns(): number {
    return this.#turns;
  }

  /** Distinct blocks retrieved. */
  get size(): number {
    return this.#counts.size;
  }

  /** Turns that retrieved the block. */
  of(label: Label): number {
    return this.#counts.get(label) ?? 0;
  }

  /** Records the distinct blocks that the next turn retrieved. */
  take(labels: readonly Label[]): void {
    const { again, pairs } = this.with(labels);
    this.#again = again;
    this.#pairs = pairs;
    this.#turns++;
    for (const label of labels) this.#counts.set(label, this.of(label) + 1);
  }

  /**
   * The counts with one more turn that retrieved these blocks. `pairs`: pairs of an earlier turn and a block of a later turn. `again`:
   * those in which the earlier turn had retrieved the block too.
   */
  with(labels: readonly Label[]): { readonly again: number; readonly pairs: number } {
    let again = this.#again;
    for (const label of labels) again += this.of(label);
    return { again, pairs: this.#pairs + this.#turns * labels.length };
  }
}

/**
 * Number of remembered requests, FIFO; also the number of bits of a {@link RequestMask}. Figures for other sizes:
 * `docs/internals/ordering-trials.md`.
 */
export const RECENT_REQUESTS = 64;
const WORD = 32;

/** The blocks of one request, as stored. */
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

/** A set of remembered requests, one bit each. Bits are reassigned, so their positions have no order. */
export interface RequestMask {
  readonly low: number;
  readonly high: number;
}

const NO_REQUEST: RequestMask = { low: 0, high: 0 };

interface Remembered {
  readonly labels: readonly Label[];
  /** The request's bit in every mask, below {@link RECENT_REQUESTS}. */
  readonly bit: number;
}

/** The block sets of a scope's last {@link RECENT_REQUESTS} requests: the prediction of later ones. */
export class RecentRetrievals {
  readonly #rows = new Map<TurnId, Remembered>();
  readonly #askedBy = new Map<Label, { -readonly [K in keyof RequestMask]: number }>();
  readonly #freeBits = Array.from({ length: RECENT_REQUESTS }, (_, bit) => bit);
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
    for (const { labels } of this.#rows.values()) yield new Set(labels);
  }

  /** The requests that retrieved a block. */
  askedBy(label: Label): RequestMask {
    return this.#askedBy.get(label) ?? NO_REQUEST;
  }

  /** Records what a request retrieved; an empty request is not recorded. */
  take(labels: readonly Label[], turn: TurnId): void {
    if (labels.length === 0) return;
    this.#put(turn, labels);
    this.#removed.delete(turn);
    this.#dirty.add(turn);
  }

  /** Removes blocks whose text was forgotten from every remembered request. */
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

  /** Returns and resets what changed since the last call. */
  drain(): RecentChanges {
    const changes = {
      upserted: [...this.#dirty].map((turn) => ({ turn, labels: this.#rows.get(turn)?.labels ?? [] })),
      removed: [...this.#removed],
    };
    this.#dirty.clear();
    this.#removed.clear();
    return changes;
  }

  /** Everything it remembers, as stored, oldest first. */
  stored(): RecentRetrieval[] {
    return Array.from(this.#rows, ([turn, { labels }]) => ({ turn, labels }));
  }

  #put(turn: TurnId, labels: readonly Label[]): void {
    const before = this.#rows.get(turn);
    if (before !== undefined) this.#unmark(before);
    else if (this.#freeBits.length === 0) this.#removeOldest();
    const bit = before?.bit ?? (this.#freeBits.pop() as number);
    this.#rows.set(turn, { labels, bit });
    for (const label of labels) {
      const mask = this.#askedBy.get(label) ?? { low: 0, high: 0 };
      this.#askedBy.set(label, mask);
      if (bit < WORD) mask.low |= 1 << bit;
      else mask.high |= 1 << (bit - WORD);
    }
  }

  #removeOldest(): void {
    for (const turn of this.#rows.keys()) {
      this.#remove(turn);
      return;
    }
  }

  #remove(turn: TurnId): void {
    const row = this.#rows.get(turn);
    if (row === undefined) return;
    this.#unmark(row);
    this.#freeBits.push(row.bit);
    this.#rows.delete(turn);
    this.#dirty.delete(turn);
    this.#removed.add(turn);
  }

  #unmark({ labels, bit }: Remembered): void {
    for (const label of labels) {
      const mask = this.#askedBy.get(label);
      if (mask === undefined) continue;
      if (bit < WORD) mask.low &= ~(1 << bit);
      else mask.high &= ~(1 << (bit - WORD));
      if (mask.low === 0 && mask.high === 0) this.#askedBy.delete(label);
    }
  }
}
