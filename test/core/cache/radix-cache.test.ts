import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import { anyTraffic, run, sharedTokens } from "./simulated-prompts.js";

interface NaiveNode {
  /** All tokens from the beginning of the prompt to the node's end. */
  readonly path: readonly number[];
  /** Where the node's own tokens begin. */
  from: number;
  usedAt: number;
}

/** SGLang's steps (match, evict, insert) on a plain list of nodes that is searched for everything. */
class NaiveRadix {
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

/** What these tokens hit to their end: one more follows, since the last token of a prompt never hits. It is taken in too. */
function hitOf(cache: SimulatedCache, tokens: readonly number[]): number {
  return cache.serve([...tokens, -1]);
}

describe("radix cache", () => {
  it("evicts as a list of all nodes would that is searched for the least recently used leaf", () => {
    fc.assert(
      fc.property(anyTraffic(6), fc.integer({ min: 1, max: 80 }), (traffic, capacityTokens) => {
        const cache = new SimulatedCache("radix", { capacityTokens });
        const naive = new NaiveRadix(capacityTokens);
        for (const prompt of traffic) {
          expect(cache.serve(prompt)).toBe(naive.serve(prompt));
          expect(cache.heldTokens).toBe(naive.heldTokens);
        }
      }),
      { numRuns: 300 },
    );
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
    expect([hitOf(cache, a), hitOf(cache, b)]).toEqual([8, 0]);
  });
});
