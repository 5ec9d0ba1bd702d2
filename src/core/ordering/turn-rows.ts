import { ChangedRows, type RowChanges } from "../text/collections.js";
import type { Label, TurnId } from "../text/ids.js";

/** What is stored of one request. */
export interface TurnRow {
  readonly turn: TurnId;
  /** Distinct; never empty. */
  readonly labels: readonly Label[];
}

/** The rows of a scope's last `max` requests, FIFO. Subclasses maintain what they derive from them. */
export abstract class TurnRows<Row extends TurnRow> {
  /** Oldest first: turns ascend, and a changed row keeps its place. */
  readonly #rows = new Map<TurnId, Row>();
  readonly #changes = new ChangedRows<TurnId>();

  constructor(private readonly max: number) {}

  get size(): number {
    return this.#rows.size;
  }

  forget(gone: ReadonlySet<Label>): void {
    for (const row of this.stored()) {
      const labels = row.labels.filter((label) => !gone.has(label));
      if (labels.length === 0) this.remove(row.turn);
      else if (labels.length < row.labels.length) this.put(this.shortened(row, labels));
    }
  }

  drain(): RowChanges<TurnId, Row> {
    return this.#changes.drain((turn) => this.#rows.get(turn));
  }

  stored(): Row[] {
    return [...this.#rows.values()];
  }

  /** Takes stored rows in any order. The subclass's constructor calls it once it can account for them. */
  protected load(rows: readonly Row[]): void {
    for (const row of [...rows].sort((a, b) => a.turn - b.turn)) this.#enter(row);
  }

  protected rowOf(turn: TurnId): Row | undefined {
    return this.#rows.get(turn);
  }

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
