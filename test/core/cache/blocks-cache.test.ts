import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BLOCK_TOKENS, SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import { anyTraffic, longestShared, run } from "./simulated-prompts.js";

/** A prompt of whole blocks, each named by a number. */
function blocks(...names: number[]): number[] {
  return names.flatMap((name) => run(name * 100, BLOCK_TOKENS));
}

/** The same, with one more token, so that every block can hit. */
function blocksAndMore(...names: number[]): number[] {
  return [...blocks(...names), -1];
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
  it("hits whole blocks of the longest prefix shared with any earlier prompt, but never the last token", () => {
    fc.assert(
      fc.property(anyTraffic(16), (traffic) => {
        const cache = new SimulatedCache("blocks");
        traffic.forEach((prompt, n) => {
          const shared = longestShared(traffic.slice(0, n), prompt);
          const hit = Math.floor(Math.min(shared, prompt.length - 1) / BLOCK_TOKENS) * BLOCK_TOKENS;
          expect(cache.serve(prompt)).toBe(Math.max(0, hit));
        });
      }),
    );
  });

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

  it("computes the whole last block of a prompt that is cached to its end", () => {
    const cache = new SimulatedCache("blocks");
    cache.serve(blocks(1, 2));
    expect(cache.serve(blocks(1, 2))).toBe(16);
    expect(cache.serve(blocksAndMore(1, 2))).toBe(32);
    expect(cache.serve(blocks(1))).toBe(0);
  });

  it("knows a block only behind the blocks that it was served behind", () => {
    const cache = new SimulatedCache("blocks");
    cache.serve(blocks(1, 2));
    expect(cache.serve(blocksAndMore(2))).toBe(0);
    expect(cache.serve(blocksAndMore(3, 2))).toBe(0);
  });

  it("tells apart tokens that read the same when written together", () => {
    const cache = new SimulatedCache("blocks");
    cache.serve([...Array<number>(15).fill(1), 11]);
    expect(cache.serve([11, ...Array<number>(16).fill(1)])).toBe(0);
  });

  it("gives up the tail of the oldest prompt first, so that prefixes live longer", () => {
    const cache = new SimulatedCache("blocks", { capacityTokens: 4 * BLOCK_TOKENS });
    cache.serve(blocks(1, 2, 3));
    // One block was free and one is needed: of 1, 2, 3 the last goes.
    cache.serve(blocks(7, 8));
    expect(cache.heldTokens).toBe(4 * BLOCK_TOKENS);
    expect(cache.serve(blocksAndMore(1, 2, 3))).toBe(32);
    // That took 3 in again, for which 8 went: the older of the two prompts, its tail first.
    expect(cache.serve(blocksAndMore(7, 8))).toBe(16);
  });

  it("gives up what was used longest ago, not what was taken in first", () => {
    const cache = new SimulatedCache("blocks", { capacityTokens: 3 * BLOCK_TOKENS });
    for (const name of [1, 2, 3, 1, 4]) cache.serve(blocks(name));
    expect([1, 3, 4].map((name) => cache.serve(blocksAndMore(name)))).toEqual([16, 16, 16]);
    expect(cache.serve(blocksAndMore(2))).toBe(0);
  });

  it("keeps the beginning of a prompt that is larger than the capacity, and nothing else", () => {
    const cache = new SimulatedCache("blocks", { capacityTokens: 3 * BLOCK_TOKENS });
    cache.serve(blocks(9, 8));
    cache.serve(blocks(1, 2, 3, 4, 5));
    expect(cache.serve(blocks(1, 2, 3, 4, 5))).toBe(48);
    expect(cache.serve(blocksAndMore(9))).toBe(0);
  });

  it("counts a capacity in whole blocks", () => {
    const cache = new SimulatedCache("blocks", { capacityTokens: 2 * BLOCK_TOKENS - 1 });
    cache.serve(blocks(1, 2));
    expect(cache.heldTokens).toBe(BLOCK_TOKENS);
  });
});
