import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BLOCK_TOKENS, SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import { anyTraffic, run } from "./simulated-prompts.js";

function blocks(...names: number[]): number[] {
  return names.flatMap((name) => run(name * 100, BLOCK_TOKENS));
}

/** Looks like `serve` in a cache of `capacity` blocks: every block as the text of the whole prefix that it ends, searched one by one. */
class NaiveBlocks {
  readonly #held: { readonly prefix: string; readonly depth: number; usedBy: number }[] = [];
  #requests = 0;

  constructor(private readonly capacity: number) {}

  get heldTokens(): number {
    return this.#held.length * BLOCK_TOKENS;
  }

  serve(tokens: readonly number[]): number {
    this.#requests++;
    const depths = run(1, Math.floor(tokens.length / BLOCK_TOKENS));
    const prefixes = depths.map((depth) => tokens.slice(0, depth * BLOCK_TOKENS).join(" "));
    const known = prefixes.map((prefix) => this.#held.find((block) => block.prefix === prefix));
    const hits = known.includes(undefined) ? known.indexOf(undefined) : known.length;
    for (const block of known.slice(0, hits)) if (block !== undefined) block.usedBy = this.#requests;
    for (const depth of depths.slice(hits)) {
      if (this.#held.length >= this.capacity && !this.#evict()) break;
      this.#held.push({ prefix: prefixes[depth - 1] ?? "", depth, usedBy: this.#requests });
    }
    return Math.min(hits, Math.max(0, Math.ceil(tokens.length / BLOCK_TOKENS) - 1)) * BLOCK_TOKENS;
  }

  #evict(): boolean {
    const idle = this.#held.filter(({ usedBy }) => usedBy < this.#requests);
    const [first] = idle.sort((a, b) => a.usedBy - b.usedBy || b.depth - a.depth);
    if (first !== undefined) this.#held.splice(this.#held.indexOf(first), 1);
    return first !== undefined;
  }
}

describe("block-hash cache", () => {
  it("evicts as a list of all blocks would that is searched for the least recently used, deepest one", () => {
    fc.assert(
      fc.property(anyTraffic(16), fc.integer({ min: 1, max: 12 }), (traffic, capacity) => {
        const cache = new SimulatedCache("blocks", { capacityTokens: capacity * BLOCK_TOKENS });
        const naive = new NaiveBlocks(capacity);
        for (const prompt of traffic) {
          expect(cache.serve(prompt)).toBe(naive.serve(prompt));
          expect(cache.heldTokens).toBe(naive.heldTokens);
        }
      }),
    );
  });

  it("tells apart tokens that read the same when written together", () => {
    const cache = new SimulatedCache("blocks");
    cache.serve([...Array<number>(15).fill(1), 11]);
    expect(cache.serve([11, ...Array<number>(16).fill(1)])).toBe(0);
  });

  it("counts a capacity in whole blocks", () => {
    const cache = new SimulatedCache("blocks", { capacityTokens: 2 * BLOCK_TOKENS - 1 });
    cache.serve(blocks(1, 2));
    expect(cache.heldTokens).toBe(BLOCK_TOKENS);
  });
});
