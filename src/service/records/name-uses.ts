/** What turns name, while some of them go: each name's uses by turns that are to go, and those that something else uses. */
export class NameUses<T> {
  readonly #kept = new Set<T>();
  readonly #uses = new Map<T, number>();

  /** Something uses these that stays. */
  keep(names: Iterable<T>): void {
    for (const name of names) this.#kept.add(name);
  }

  /** One that is to go uses these. */
  count(names: Iterable<T>): void {
    for (const name of names) this.#uses.set(name, (this.#uses.get(name) ?? 0) + 1);
  }

  /** Of the names that some use which go, one entry for each use, those that nothing else does. Names that were never counted stay. */
  freedBy(gone: readonly T[]): T[] {
    const going = new NameUses<T>();
    going.count(gone);
    return [...going.#uses].flatMap(([name, uses]) => {
      return !this.#kept.has(name) && this.#uses.get(name) === uses ? name : [];
    });
  }

  /** All names that are used, less those that {@link freedBy} gives. */
  without(gone: readonly T[]): ReadonlySet<T> {
    const names = new Set([...this.#kept, ...this.#uses.keys()]);
    for (const name of this.freedBy(gone)) names.delete(name);
    return names;
  }

  /** These uses are no more. */
  drop(gone: readonly T[]): void {
    for (const name of gone) {
      const left = (this.#uses.get(name) ?? 0) - 1;
      if (left > 0) this.#uses.set(name, left);
      else this.#uses.delete(name);
    }
  }
}
