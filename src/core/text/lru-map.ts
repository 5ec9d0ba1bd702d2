/** A map of at most `max` entries that evicts the least recently used one. `get` and `set` count as use; iteration does not. */
export class LruMap<K, V> {
  readonly #values = new Map<K, V>();
  /**
   * Stands behind the last evicted entry. A new iterator would pass all that were deleted since the map was last rehashed: 13 µs an eviction
   * among 20,000 entries. Entries in use are moved to the end, so all that are left are before it.
   */
  #oldest = this.#values.keys();

  /** @param max entries, at least 1 */
  constructor(private readonly max: number) {}

  get size(): number {
    return this.#values.size;
  }

  get(key: K): V | undefined {
    const value = this.#values.get(key);
    if (value === undefined) return undefined;
    this.#values.delete(key);
    this.#values.set(key, value);
    return value;
  }

  set(key: K, value: V): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size <= this.max) return;
    const oldest = this.#oldest.next();
    if (!oldest.done) this.#values.delete(oldest.value);
  }

  /** Values, least recently used first. */
  values(): IterableIterator<V> {
    return this.#values.values();
  }

  clear(): void {
    this.#values.clear();
    this.#oldest = this.#values.keys();
  }
}
