import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mostSavable, type WeighedContext } from "../../bench/saving-bound.js";
import { type Label, planBatch } from "../../src/core/index.js";

/** No two blocks have as many tokens. */
const tokensOf = (label: number) => label * label + 3;
const contextOf = (blocks: readonly number[]): WeighedContext =>
  new Map(blocks.map((block) => [block as Label, tokensOf(block)]));

/** What an endless cache saves where the prompts hold their blocks in these orders. */
function savedBy(orders: readonly (readonly number[])[]): number {
  const seen = new Set<string>();
  let saved = 0;
  for (const order of orders) {
    for (const [at, block] of order.entries()) {
      const path = order.slice(0, at + 1).join();
      if (seen.has(path)) saved += tokensOf(block);
      seen.add(path);
    }
  }
  return saved;
}

function mostSaved(contexts: readonly (readonly number[])[]): number {
  const [first, ...rest] = contexts;
  if (first === undefined) return 0;
  const tryAll = (orders: readonly number[][], left: readonly (readonly number[])[]): number => {
    const [next, ...others] = left;
    if (next === undefined) return savedBy(orders);
    return Math.max(...permutations(next).map((order) => tryAll([...orders, order], others)));
  };
  return Math.max(...permutations(first).map((order) => tryAll([order], rest)));
}

function permutations(blocks: readonly number[]): number[][] {
  if (blocks.length === 0) return [[]];
  return blocks.flatMap((block) =>
    permutations(blocks.filter((other) => other !== block)).map((rest) => [block, ...rest]),
  );
}

const anyContexts = (blocks: number, contexts: number) =>
  fc.array(fc.uniqueArray(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: blocks }), {
    minLength: 1,
    maxLength: contexts,
  });

describe("the most that a batch can save", () => {
  it("is never less than what some orders save", () => {
    fc.assert(
      fc.property(anyContexts(3, 4), fc.integer({ min: 2, max: 5 }), (contexts, depth) => {
        expect(mostSavable(contexts.map(contextOf), depth)).toBeGreaterThanOrEqual(mostSaved(contexts) - 1e-6);
      }),
    );
  });

  it("is never less than what our plan saves, nor more the deeper it looks", () => {
    fc.assert(
      fc.property(anyContexts(6, 12), (contexts) => {
        const requests = contexts.map((blocks) => ({
          key: "one",
          blocks: blocks.map((block) => ({ label: block as Label, tokens: tokensOf(block) })),
        }));
        const saved = savedBy(planBatch(requests, "shared-prefixes").requests.map(({ order }) => order));
        const bounds = [2, 3, 5, 8].map((depth) => mostSavable(contexts.map(contextOf), depth));
        for (const bound of bounds) expect(bound).toBeGreaterThanOrEqual(saved - 1e-6);
        for (const [at, bound] of bounds.slice(1).entries())
          expect(bound).toBeLessThanOrEqual((bounds[at] ?? 0) + 1e-6);
      }),
    );
  });
});
