/** A map of at most `max` entries that evicts the least recently used one. `get` and `set` count as use; iteration does not. */
export class LruMap<K, V> {
  readonly #values = new Map<K, V>();

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
    const [oldest] = this.#values.keys();
    if (oldest !== undefined) this.#values.delete(oldest);
  }

  /** Values, least recently used first. */
  values(): IterableIterator<V> {
    return this.#values.values();
  }

  clear(): void {
    this.#values.clear();
  }
}
