/** Names that bodies hold by number. Numbers are for good: a new name gets a new one. */
export class NumberedNames<Name extends string> {
  readonly #names: ReadonlyMap<number, Name>;

  constructor(private readonly numbers: Readonly<Record<Name, number>>) {
    const entries = Object.entries(numbers) as [Name, number][];
    this.#names = new Map(entries.map(([name, number]) => [number, name]));
  }

  numberOf(name: Name): number {
    return this.numbers[name];
  }

  /** Throws for a number that has no name. */
  nameOf(number: number): Name {
    const name = this.#names.get(number);
    if (name === undefined) throw new RangeError(`no name has the number ${number}`);
    return name;
  }
}
