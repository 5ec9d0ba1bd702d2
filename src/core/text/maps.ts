/** What a map has under a key; where it has nothing, what `make` gives, from now on. (`getOrInsertComputed` needs a newer Node.) */
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

/** An entry between those that were used before and after it. */
interface Linked<K, V> {
  readonly key: K;
  value: V;
  older: Linked<K, V> | null;
  newer: Linked<K, V> | null;
}

/**
 * A map that evicts the least recently used entry beyond `max`. `get` and `set` count as use; `peek`, `has` and iteration do not. A `Map`
 * alone, whose entries are deleted and set again with every use, does not do: finding its first entry passes all that were deleted since it
 * was last rehashed (13 µs among 20,000), and an iterator that stands there instead keeps every table that the map has had since.
 */
export class LruMap<K, V> {
  readonly #entries = new Map<K, Linked<K, V>>();
  #oldest: Linked<K, V> | null = null;
  #newest: Linked<K, V> | null = null;

  /** @param max entries, at least 1; default: no bound, for owners that evict by themselves */
  constructor(private readonly max = Number.POSITIVE_INFINITY) {}

  get size(): number {
    return this.#entries.size;
  }

  /** The least recently used key; undefined in an empty map. */
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

  /** Values, least recently used first. */
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
