/** Rows of one kind that changed, to be stored in one transaction. */
export interface RowChanges<Key, Row> {
  readonly upserted: readonly Row[];
  readonly removed: readonly Key[];
}

export const NO_ROWS_CHANGED: RowChanges<never, never> = { upserted: [], removed: [] };

/** Which rows of one kind changed since they were drained, by their keys. */
export class ChangedRows<Key> {
  readonly #written = new Set<Key>();
  readonly #removed = new Set<Key>();

  /** A row is new, or another than before. */
  written(key: Key): void {
    this.#removed.delete(key);
    this.#written.add(key);
  }

  removed(key: Key): void {
    this.#written.delete(key);
    this.#removed.add(key);
  }

  /** Returns and resets what changed since the last call, rows in the order of their first change. */
  drain<Row extends object>(rowOf: (key: Key) => Row | undefined): RowChanges<Key, Row> {
    const upserted: Row[] = [];
    for (const key of this.#written) {
      const row = rowOf(key);
      if (row !== undefined) upserted.push(row);
    }
    const removed = [...this.#removed];
    this.#written.clear();
    this.#removed.clear();
    return { upserted, removed };
  }
}
