import type { Label } from "../text/ids.js";

/** How often the turns of a conversation retrieved the same blocks again: predicts how many blocks of a later retrieval will be new. */
export class SeenRetrievals {
  readonly #counts = new Map<Label, number>();
  #turns = 0;
  #again = 0;
  #pairs = 0;

  /** Turns recorded. */
  get turns(): number {
    return this.#turns;
  }

  /** Distinct blocks retrieved. */
  get size(): number {
    return this.#counts.size;
  }

  /** Turns that retrieved the block. */
  of(label: Label): number {
    return this.#counts.get(label) ?? 0;
  }

  /** Records the distinct blocks that the next turn retrieved. */
  take(labels: readonly Label[]): void {
    const { again, pairs } = this.with(labels);
    this.#again = again;
    this.#pairs = pairs;
    this.#turns++;
    for (const label of labels) this.#counts.set(label, this.of(label) + 1);
  }

  /**
   * The counts with one more turn that retrieved these blocks. `pairs`: pairs of an earlier turn and a block of a later turn. `again`:
   * those in which the earlier turn had retrieved the block too.
   */
  with(labels: readonly Label[]): { readonly again: number; readonly pairs: number } {
    let again = this.#again;
    for (const label of labels) again += this.of(label);
    return { again, pairs: this.#pairs + this.#turns * labels.length };
  }
}
