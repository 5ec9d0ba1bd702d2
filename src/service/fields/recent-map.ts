/** What was learned last, by name: at most so many; the one that was set longest ago goes first. For names that clients choose. */
export class RecentMap<V> {
  readonly #values = new Map<string, V>();

  constructor(private readonly max: number) {}

  get(name: string): V | undefined {
    return this.#values.get(name);
  }

  set(name: string, value: V): void {
    this.#values.delete(name);
    this.#values.set(name, value);
    const [oldest] = this.#values.keys();
    if (this.#values.size > this.max && oldest !== undefined) this.#values.delete(oldest);
  }
}
