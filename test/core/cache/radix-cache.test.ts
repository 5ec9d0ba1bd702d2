import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import { anyTraffic, longestShared, run, sharedTokens } from "./simulated-prompts.js";

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
  it("hits the longest prefix shared with any earlier prompt, to the token, but never the last token", () => {
    fc.assert(
      fc.property(anyTraffic(10), (traffic) => {
        const cache = new SimulatedCache("radix");
        traffic.forEach((prompt, n) => {
          const shared = longestShared(traffic.slice(0, n), prompt);
          const hit = Math.max(0, Math.min(shared, prompt.length - 1));
          expect(cache.serve(prompt)).toBe(hit);
        });
      }),
    );
  });

  it("holds every prefix that prompts share once", () => {
    fc.assert(
      fc.property(anyTraffic(10), (traffic) => {
        const cache = new SimulatedCache("radix");
        const prefixes = new Set<string>();
        for (const prompt of traffic) {
          cache.serve(prompt);
          for (let end = 1; end <= prompt.length; end++) prefixes.add(prompt.slice(0, end).join(" "));
        }
        expect(cache.heldTokens).toBe(prefixes.size);
      }),
      { numRuns: 30 },
    );
  });

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

  it("evicts whole leaves, the least recently used first", () => {
    const cache = new SimulatedCache("radix", { capacityTokens: 30 });
    const [a, b, c] = [run(100, 10), run(200, 10), run(300, 10)];
    for (const tokens of [a, b, c, a]) cache.serve(tokens);
    // One token is missing, and all ten of b go for it.
    cache.serve([7]);
    expect(cache.heldTokens).toBe(21);
    expect([hitOf(cache, c), hitOf(cache, a), hitOf(cache, b)]).toEqual([10, 10, 0]);
  });

  it("keeps a shared prefix for longer than the tails behind it", () => {
    const cache = new SimulatedCache("radix", { capacityTokens: 20 });
    const head = run(100, 8);
    cache.serve([...head, ...run(200, 4)]);
    cache.serve([...head, ...run(300, 4)]);
    expect(cache.heldTokens).toBe(16);
    // Six tokens, and four are free: the older tail goes, the head is no leaf.
    cache.serve(run(400, 6));
    expect(cache.heldTokens).toBe(18);
    expect(cache.serve([...head, ...run(300, 4)])).toBe(11);
    expect(cache.serve([...head, 200])).toBe(8);
  });

  it("does not evict the prefix that the running request hits", () => {
    const cache = new SimulatedCache("radix", { capacityTokens: 12 });
    const head = run(100, 8);
    cache.serve(head);
    cache.serve(run(500, 4));
    // The head is the older of the two, but in use: the other one makes room.
    expect(cache.serve([...head, ...run(200, 4)])).toBe(8);
    expect(cache.heldTokens).toBe(12);
    expect(hitOf(cache, [...head, ...run(200, 3)])).toBe(11);
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

  it("keeps the beginning of a prompt that is larger than the capacity, and nothing else", () => {
    const cache = new SimulatedCache("radix", { capacityTokens: 10 });
    cache.serve(run(100, 5));
    cache.serve(run(200, 25));
    expect(cache.heldTokens).toBe(10);
    expect(cache.serve(run(200, 25))).toBe(10);
    expect(hitOf(cache, run(100, 5))).toBe(0);
  });
});
