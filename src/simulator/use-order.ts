/** What a `UseOrder` writes on the things that stand in it; a thing stands in one order at a time. */
export interface InUseOrder<T> {
  /** When it was last used, in the caller's milliseconds. */
  usedAt: number;
  older: T | null;
  newer: T | null;
}

/** Things by their last use. Every step takes constant time, so that a cache of many thousand entries can evict one by one. */
export class UseOrder<T extends InUseOrder<T>> {
  #oldest: T | null = null;
  #newest: T | null = null;

  /** What was used longest ago. */
  get oldest(): T | null {
    return this.#oldest;
  }

  has(item: T): boolean {
    return item.older !== null || this.#oldest === item;
  }

  /** Makes an item, new or not, the one used last. */
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

  /** Removes and gives what was last used at `time` or before, oldest first. */
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
