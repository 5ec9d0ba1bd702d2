/* Collections that JavaScript lacks: unbounded lists, maps that make or evict their entries, and rows that are stored when they changed. */

/* `Math.max(...values)` and `list.push(...values)` overflow the stack from about 100,000 values; these do not. */

export function largest(values: Iterable<number>, least = Number.NEGATIVE_INFINITY): number {
  let most = least;
  for (const value of values) most = Math.max(most, value);
  return most;
}

export function smallest(values: Iterable<number>, most = Number.POSITIVE_INFINITY): number {
  let least = most;
  for (const value of values) least = Math.min(least, value);
  return least;
}

export function append<T>(list: T[], values: Iterable<T>): void {
  for (const value of values) list.push(value);
}

/** Keys and items in order of first occurrence. (`Map.groupBy` needs Node 21.) */
export function groupBy<K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    keptIn(groups, keyOf(item), () => []).push(item);
  }
  return groups;
}

/** A map's value; a missing one is made and stored. (`getOrInsertComputed` needs a newer Node.) */
export function keptIn<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: (key: K) => V,
): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make(key);
  map.set(key, made);
  return made;
}

interface Linked<K, V> {
  readonly key: K;
  value: V;
  older: Linked<K, V> | null;
  newer: Linked<K, V> | null;
}

/** Evicts the least recently used entry beyond `max`; `peek`, `has` and iteration are no use. Linked: a `Map` finds its first entry slowly. */
export class LruMap<K, V> {
  readonly #entries = new Map<K, Linked<K, V>>();
  #oldest: Linked<K, V> | null = null;
  #newest: Linked<K, V> | null = null;

  /** @param max entries, at least 1; default: no bound, for owners that evict by themselves */
  constructor(private readonly max = Number.POSITIVE_INFINITY) {}

  get size(): number {
    return this.#entries.size;
  }

  /** The least recently used key. */
  get oldest(): K | undefined {
    return this.#oldest?.key;
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#unlink(entry);
    this.#append(entry);
    return entry.value;
  }

  set(key: K, value: V): void {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      known.value = value;
      this.get(key);
      return;
    }
    const entry = { key, value, older: null, newer: null };
    this.#entries.set(key, entry);
    this.#append(entry);
    if (this.size > this.max && this.#oldest !== null) this.delete(this.#oldest.key);
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#unlink(entry);
  }

  clear(): void {
    this.#entries.clear();
    this.#oldest = null;
    this.#newest = null;
  }

  /** Least recently used first. */
  *values(): Generator<V, void, undefined> {
    for (let entry = this.#oldest; entry !== null; entry = entry.newer) yield entry.value;
  }

  #append(entry: Linked<K, V>): void {
    entry.older = this.#newest;
    entry.newer = null;
    if (this.#newest === null) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  #unlink(entry: Linked<K, V>): void {
    if (entry.older === null) this.#oldest = entry.newer;
    else entry.older.newer = entry.newer;
    if (entry.newer === null) this.#newest = entry.older;
    else entry.newer.older = entry.older;
  }
}

/** Rows to be stored in one transaction. */
export interface RowChanges<Key, Row> {
  readonly upserted: readonly Row[];
  readonly removed: readonly Key[];
}

export const NO_ROWS_CHANGED: RowChanges<never, never> = { upserted: [], removed: [] };

/** The keys of rows that changed since the last drain. */
export class ChangedRows<Key> {
  readonly #written = new Set<Key>();
  readonly #removed = new Set<Key>();

  written(key: Key): void {
    this.#removed.delete(key);
    this.#written.add(key);
  }

  removed(key: Key): void {
    this.#written.delete(key);
    this.#removed.add(key);
  }

  /** Returns and resets the changes, in the order of their first change. */
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
