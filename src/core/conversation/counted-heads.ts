import type { Digest } from "../text/ids.js";
import { LruMap } from "../text/lru-map.js";

/** An agent has a few sets of instructions; more than these are counted again. */
const MOST_HEADS = 4;

/** Token counts of the instructions that a scope's last prompts began with: they are long, and the same from prompt to prompt. */
export class CountedHeads {
  readonly #tokens = new LruMap<Digest, number>(MOST_HEADS);

  /** @param count asked where they are not known */
  tokensOf(head: Digest, count: () => number): number {
    const known = this.#tokens.get(head);
    if (known !== undefined) return known;
    const tokens = count();
    this.#tokens.set(head, tokens);
    return tokens;
  }
}
