import { ChangedRows, type RowChanges } from "../text/collections.js";
import type { Label, TurnId } from "../text/ids.js";

/** Requests in CRAFT's sliding window. */
export const WINDOW_REQUESTS = 1_000;
/** Minimum requests in the window before a block is promoted into the prefix tree. */
const PROMOTION_THRESHOLD = 2;

/** One request of the window, as stored. */
export interface Access {
  readonly turn: TurnId;
  /** Its blocks in prompt order; never empty. */
  readonly labels: readonly Label[];
  /** How many leading blocks it promoted into the prefix tree. */
  readonly promoted: number;
}

/**
 * CRAFT's state: the access count of each block over the last {@link WINDOW_REQUESTS} requests (the CA-Table), and the prefixes of frequently
 * accessed blocks (the CP-Tree), as rows of the window. So a request that leaves the window takes its counts and its prefix with it.
 */
export class AccessWindow {
  /** By turn, ascending. */
  readonly #rows: Access[];
  readonly #counts = new Map<Label, number>();
  readonly #changes = new ChangedRows<TurnId>();

  /** Takes rows in any order. */
  constructor(rows: readonly Access[]) {
    this.#rows = [...rows].sort((a, b) => a.turn - b.turn);
    for (const row of rows) this.#account(row, 1);
  }

  /** Requests in the window. */
  get size(): number {
    return this.#rows.length;
  }

  /** Requests of the window that accessed this block. */
  countOf(label: Label): number {
    return this.#counts.get(label) ?? 0;
  }

  /** Distinct blocks by access count, descending; ties keep their relevance order. */
  byFrequency(labels: readonly Label[]): Label[] {
    return [...labels].sort((a, b) => this.countOf(b) - this.countOf(a));
  }

  /** The same, but first along the promoted prefixes: at each step to the next block with the highest count. */
  alongPrefixes(labels: readonly Label[]): Label[] {
    const hottest = this.byFrequency(labels);
    const front: Label[] = [];
    for (let along: readonly Access[] = this.#rows; ; ) {
      const at = front.length;
      along = along.filter(({ promoted }) => promoted > at);
      const nexts = new Set(along.map((row) => row.labels[at]));
      const next = hottest.find((label) => nexts.has(label));
      if (next === undefined) return [...front, ...hottest.filter((label) => !front.includes(label))];
      front.push(next);
      along = along.filter((row) => row.labels[at] === next);
    }
  }

  /**
   * Counts a request that is being served with distinct blocks in this order. Promotes its leading blocks while their counts reach the
   * threshold. Counting a turn again replaces its row. A request without blocks is not counted.
   */
  take(labels: readonly Label[], turn: TurnId): void {
    this.#remove(turn);
    if (labels.length === 0) return;
    const row = { turn, labels: [...labels], promoted: 0 };
    this.#account(row, 1);
    const rare = labels.findIndex((label) => this.countOf(label) < PROMOTION_THRESHOLD);
    this.#account(row, -1);
    this.#put({ ...row, promoted: rare < 0 ? labels.length : rare });
    const [oldest] = this.#rows;
    if (this.size > WINDOW_REQUESTS && oldest !== undefined) this.#remove(oldest.turn);
  }

  /** The engine evicted a request's prefix: what it promoted leaves the prefix tree, unless another request did too. Counts stay. */
  evict(turn: TurnId): void {
    const row = this.#rowOf(turn);
    if (row === undefined || row.promoted === 0) return;
    this.#remove(turn);
    this.#put({ ...row, promoted: 0 });
  }

  /** Removes blocks whose text was forgotten: from the counts, and every promoted prefix from the first of them on. */
  forget(labels: ReadonlySet<Label>): void {
    for (const row of [...this.#rows]) {
      const cut = row.labels.findIndex((label) => labels.has(label));
      if (cut < 0) continue;
      const left = row.labels.filter((label) => !labels.has(label));
      this.#remove(row.turn);
      if (left.length > 0) this.#put({ turn: row.turn, labels: left, promoted: Math.min(row.promoted, cut) });
    }
  }

  /** Returns and resets what changed since the last call. */
  drain(): RowChanges<TurnId, Access> {
    return this.#changes.drain((turn) => this.#rowOf(turn));
  }

  /** The window, as stored, oldest first. */
  stored(): Access[] {
    return [...this.#rows];
  }

  #put(row: Access): void {
    this.#rows.splice(this.#rankOf(row.turn), 0, row);
    this.#account(row, 1);
    this.#changes.written(row.turn);
  }

  #remove(turn: TurnId): void {
    const row = this.#rowOf(turn);
    if (row === undefined) return;
    this.#rows.splice(this.#rankOf(turn), 1);
    this.#account(row, -1);
    this.#changes.removed(turn);
  }

  #rowOf(turn: TurnId): Access | undefined {
    const row = this.#rows[this.#rankOf(turn)];
    return row?.turn === turn ? row : undefined;
  }

  /** Adds a row to the counts, or subtracts it (`by` -1). */
  #account({ labels }: Access, by: 1 | -1): void {
    for (const label of labels) {
      const count = this.countOf(label) + by;
      if (count === 0) this.#counts.delete(label);
      else this.#counts.set(label, count);
    }
  }

  /** Number of rows of older turns. O(1) for the newest turn, the usual case. */
  #rankOf(turn: TurnId): number {
    return this.#rows.findLastIndex((row) => row.turn < turn) + 1;
  }
}
