import { ChangedRows, type RowChanges } from "../text/collections.js";
import type { Label, TurnId } from "../text/ids.js";

/** What is remembered of one request, as stored. */
export interface TurnRow {
  readonly turn: TurnId;
  /** Its blocks, distinct; never empty. */
  readonly labels: readonly Label[];
}

/** The rows of a scope's last `max` requests, FIFO. A subclass keeps account of what it derives from them. */
export abstract class TurnRows<Row extends TurnRow> {
  /** Oldest first: turns ascend, and a changed row keeps its place. */
  readonly #rows = new Map<TurnId, Row>();
  readonly #changes = new ChangedRows<TurnId>();

  constructor(private readonly max: number) {}

  get size(): number {
    return this.#rows.size;
  }

  /** Removes blocks whose text was forgotten from every row. */
  forget(gone: ReadonlySet<Label>): void {
    for (const row of this.stored()) {
      const labels = row.labels.filter((label) => !gone.has(label));
      if (labels.length === 0) this.remove(row.turn);
      else if (labels.length < row.labels.length) this.put(this.shortened(row, labels));
    }
  }

  /** Returns and resets what changed since the last call. */
  drain(): RowChanges<TurnId, Row> {
    return this.#changes.drain((turn) => this.#rows.get(turn));
  }

  /** All rows, as stored, oldest first. */
  stored(): Row[] {
    return [...this.#rows.values()];
  }

  /** Takes stored rows in any order; for the subclass's constructor, once it can account for them. */
  protected load(rows: readonly Row[]): void {
    for (const row of [...rows].sort((a, b) => a.turn - b.turn)) this.#enter(row);
  }

  protected rowOf(turn: TurnId): Row | undefined {
    return this.#rows.get(turn);
  }

  /** Adds a row, or replaces that of its turn. */
  protected put(row: Row): void {
    this.#enter(row);
    this.#changes.written(row.turn);
  }

  protected remove(turn: TurnId): void {
    const row = this.#rows.get(turn);
    if (row === undefined) return;
    this.#rows.delete(turn);
    this.left(row);
    this.#changes.removed(turn);
  }

  protected abstract entered(row: Row): void;
  protected abstract left(row: Row): void;
  /** A row with only some of its blocks. */
  protected abstract shortened(row: Row, labels: readonly Label[]): Row;

  #enter(row: Row): void {
    const before = this.#rows.get(row.turn);
    const [oldest] = this.#rows.keys();
    if (before !== undefined) this.left(before);
    else if (this.size === this.max && oldest !== undefined) this.remove(oldest);
    this.#rows.set(row.turn, row);
    this.entered(row);
  }
}
