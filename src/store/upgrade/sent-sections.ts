import {
  BlockRegister,
  type Digest,
  digestOf,
  labelsIn,
  renderSection,
  retained,
  type StoredScope,
  type Turn,
} from "../../core/index.js";

/**
 * Tells which of a scope's sections each of its turns sent, by rendering them again. The tables from before the journal know only that they
 * were sent; in the journal they go with the turns that sent them.
 */
export class SentSections {
  readonly #register: BlockRegister;
  readonly #known: ReadonlySet<Digest>;
  /** Those that no turn was found to have sent. */
  readonly #left: Set<Digest>;

  constructor({ register, counters }: StoredScope, known: readonly Digest[]) {
    // Nothing is added, so nothing is counted.
    this.#register = new BlockRegister(register, counters.nextLabel, () => 0);
    this.#known = new Set(known);
    this.#left = new Set(known);
  }

  /** Of a turn, as it was sent and as it is replayed. */
  of({ injection, retention }: Turn): readonly Digest[] {
    // A damaged scope is moved as it is.
    for (const label of labelsIn(injection)) if (this.#register.get(label) === undefined) return [];
    const rendered = [injection, retained(injection, retention)].map((standing) =>
      renderSection(standing, this.#register.textOf),
    );
    const sent = [...new Set(rendered)].filter((text) => text !== "").map(digestOf);
    const found = sent.filter((digest) => this.#known.has(digest));
    for (const digest of found) this.#left.delete(digest);
    return found;
  }

  /** Those of no turn, after all turns were asked for: of removed ones, or from before a memory of theirs was forgotten. */
  get left(): readonly Digest[] {
    return [...this.#left];
  }
}
