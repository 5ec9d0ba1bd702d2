import { UseOrderMap } from "./use-order-map.js";

/** A map of at most `max` entries that evicts the least recently used one. `get` and `set` count as use; iteration does not. */
export class LruMap<K, V> {
  readonly #values = new UseOrderMap<K, V>();

  /** @param max entries, at least 1 */
  constructor(private readonly max: number) {}

  get size(): number {
    return this.#values.size;
  }

  get(key: K): V | undefined {
    return this.#values.use(key);
  }

  set(key: K, value: V): void {
    this.#values.set(key, value);
    const { oldest } = this.#values;
    if (this.#values.size > this.max && oldest !== undefined) this.#values.delete(oldest);
  }

  delete(key: K): void {
    this.#values.delete(key);
  }

  /** Values, least recently used first. */
  values(): IterableIterator<V> {
    return this.#values.values();
  }

  clear(): void {
    this.#values.clear();
  }
}
