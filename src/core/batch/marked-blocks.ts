import type { WantedTokens } from "../context-index/prefix-forest.js";
import type { Label } from "../text/ids.js";

/** Some of a batch's blocks with their tokens, to search for: one per batch, marked anew for each search. */
export class MarkedBlocks implements WantedTokens {
  /** By block: the last marking that it was part of. */
  readonly #marks: Uint32Array;
  #marking = 0;
  #blocks: readonly number[] = [];

  constructor(readonly tokensOf: Float64Array) {
    this.#marks = new Uint32Array(tokensOf.length);
  }

  get size(): number {
    return this.#blocks.length;
  }

  /** Replaces the marked blocks. */
  mark(blocks: readonly number[]): this {
    this.#marking++;
    for (const block of blocks) this.#marks[block] = this.#marking;
    this.#blocks = blocks;
    return this;
  }

  has(block: Label): boolean {
    return this.#marks[block] === this.#marking;
  }

  get(block: Label): number | undefined {
    return this.has(block) ? this.tokensOf[block] : undefined;
  }

  keys(): Iterable<Label> {
    return this.#blocks as readonly Label[];
  }
}
