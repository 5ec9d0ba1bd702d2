import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BLOCK_TOKENS, type PrefixCache, SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import { sharedTokens } from "./slot-cache.js";

/** `count` tokens that say where they are: `from`, `from + 1`, … */
function run(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, n) => from + n);
}

/** Prompts of a few content blocks, of about `blockTokens` each, that often share a beginning; some are sent again. */
function anyTraffic(blockTokens: number): fc.Arbitrary<number[][]> {
  const length = fc.oneof(
    fc.constantFrom(blockTokens, 2 * blockTokens, blockTokens + 1),
    fc.integer({ min: 1, max: 2 * blockTokens }),
  );
  const block = fc.record({ kind: fc.nat({ max: 1 }), length });
  const prompt = fc
    .array(block, { maxLength: 7 })
    .map((blocks) => blocks.flatMap(({ kind, length }) => run(kind * 100_000 - 1, length)));
  return fc
    .array(prompt, { minLength: 1, maxLength: 5 })
    .chain((prompts) => fc.array(fc.constantFrom(...prompts), { maxLength: 14 }));
}

/** Looks like `serve` in a cache of `capacity` blocks: every block as the text of the whole prefix that it ends, searched one by one. */
class NaiveBlocks implements PrefixCache {
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

interface NaiveNode {
  /** All tokens from the beginning of the prompt to the node's end. */
  readonly path: readonly number[];
  /** Where the node's own tokens begin. */
  from: number;
  usedAt: number;
}

/** SGLang's steps (match, evict, insert) on a plain list of nodes that is searched for everything. */
class NaiveRadix implements PrefixCache {
  #nodes: NaiveNode[] = [];
  #clock = 0;

  constructor(private readonly capacity: number) {}

  get heldTokens(): number {
    return this.#nodes.reduce((sum, { path, from }) => sum + path.length - from, 0);
  }

  serve(tokens: readonly number[]): number {
    const hit = this.#match(tokens.slice(0, -1));
    const needed = tokens.length - hit;
    while (this.capacity - this.heldTokens < needed) {
      const leaves = this.#nodes.filter((node) => this.#isIdleLeaf(node, tokens.slice(0, hit)));
      const [oldest] = leaves.sort((a, b) => a.usedAt - b.usedAt);
      if (oldest === undefined) break;
      this.#nodes = this.#nodes.filter((node) => node !== oldest);
    }
    const kept = tokens.slice(0, hit + Math.min(needed, this.capacity - this.heldTokens));
    const from = this.#match(kept);
    if (from < kept.length) this.#nodes.push({ path: kept, from, usedAt: this.#clock });
    return hit;
  }

  #match(tokens: readonly number[]): number {
    const usedAt = ++this.#clock;
    let at = 0;
    for (;;) {
      const child = this.#nodes.find(
        ({ path, from }) => from === at && at < tokens.length && sharedTokens(path, tokens) > at,
      );
      if (child === undefined) return at;
      child.usedAt = usedAt;
      const end = sharedTokens(child.path, tokens);
      if (end < child.path.length) {
        this.#nodes.push({ path: child.path.slice(0, end), from: at, usedAt });
        child.from = end;
        return end;
      }
      at = end;
    }
  }

  #isIdleLeaf({ path }: NaiveNode, inUse: readonly number[]): boolean {
    const isBelow = (longer: readonly number[]) => sharedTokens(path, longer) === path.length;
    return !isBelow(inUse) && !this.#nodes.some((node) => node.path.length > path.length && isBelow(node.path));
  }
}

describe("a simulated cache", () => {
  it.each<["blocks" | "radix", number, (capacity: number) => PrefixCache]>([
    ["blocks", BLOCK_TOKENS, (capacity) => new NaiveBlocks(Math.floor(capacity / BLOCK_TOKENS))],
    ["radix", 6, (capacity) => new NaiveRadix(capacity)],
  ])("hits and evicts as a plain list does that is searched for everything: %s", (kind, blockTokens, naiveOf) => {
    const capacities = fc.oneof(fc.integer({ min: 1, max: 14 * blockTokens }), fc.constant(Number.POSITIVE_INFINITY));
    fc.assert(
      fc.property(anyTraffic(blockTokens), capacities, (traffic, capacityTokens) => {
        const cache = new SimulatedCache(kind, { capacityTokens });
        const naive = naiveOf(capacityTokens);
        for (const prompt of traffic) {
          const own = [...prompt];
          expect(cache.serve(own)).toBe(naive.serve(prompt));
          // It keeps a copy.
          own.fill(-5);
          expect(cache.heldTokens).toBe(naive.heldTokens);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("tells apart tokens that read the same when written together", () => {
    const cache = new SimulatedCache("blocks");
    cache.serve([...Array<number>(15).fill(1), 11]);
    expect(cache.serve([11, ...Array<number>(16).fill(1)])).toBe(0);
  });

  it("takes a leaf that a prompt leaves in its middle for used to its end, as SGLang does", () => {
    const cache = new SimulatedCache("radix", { capacityTokens: 20 });
    const [a, b] = [run(100, 8), run(200, 8)];
    cache.serve(a);
    cache.serve(b);
    cache.serve([...a.slice(0, 4), 7, 8]);
    // Three tokens, and two are free. The second half of a was never asked for again, and yet b goes.
    cache.serve(run(900, 3));
    expect(cache.heldTokens).toBe(13);
    expect([a, b].map((tokens) => cache.serve([...tokens, -1]))).toEqual([8, 0]);
  });

  it("refuses a capacity that is not above 0", () => {
    for (const capacityTokens of [0, -1, Number.NaN])
      expect(() => new SimulatedCache("radix", { capacityTokens })).toThrow(RangeError);
  });
});
