/** Links that a `UseOrder` keeps on its items; an item is in one order at a time. */
export interface InUseOrder<T> {
  /** When it was last used, in the caller's milliseconds. */
  usedAt: number;
  older: T | null;
  newer: T | null;
}

/** LRU order as a linked list: every step takes constant time, so that a cache of many thousand entries can evict one by one. */
export class UseOrder<T extends InUseOrder<T>> {
  #oldest: T | null = null;
  #newest: T | null = null;

  /** The least recently used item. */
  get oldest(): T | null {
    return this.#oldest;
  }

  has(item: T): boolean {
    return item.older !== null || this.#oldest === item;
  }

  /** Makes an item, new or not, the most recently used. */
  use(item: T, now: number): void {
    this.remove(item);
    item.usedAt = now;
    item.older = this.#newest;
    if (this.#newest === null) this.#oldest = item;
    else this.#newest.newer = item;
    this.#newest = item;
  }

  remove(item: T): void {
    if (!this.has(item)) return;
    if (item.older === null) this.#oldest = item.newer;
    else item.older.newer = item.newer;
    if (item.newer === null) this.#newest = item.older;
    else item.newer.older = item.older;
    item.older = null;
    item.newer = null;
  }

  /** Removes and yields items last used at `time` or before, oldest first. */
  *removeUntil(time: number): Generator<T, void, undefined> {
    for (let item = this.#oldest; item !== null && item.usedAt <= time; item = this.#oldest) {
      this.remove(item);
      yield item;
    }
  }

  clear(): void {
    this.#oldest = null;
    this.#newest = null;
  }
}
