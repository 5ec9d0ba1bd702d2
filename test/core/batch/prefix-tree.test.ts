import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  inBoth,
  joinAll,
  nodesOf,
  type PrefixNode,
  refined,
  requestNode,
  savedTokens,
  tokensIn,
} from "../../../src/core/batch/prefix-tree.js";

const TOKENS = Float64Array.from({ length: 16 }, (_, block) => 5 + ((block * 11) % 17));

const anySets = fc.array(fc.uniqueArray(fc.nat({ max: 15 }), { maxLength: 10 }), { minLength: 1, maxLength: 24 });

function built(sets: readonly (readonly number[])[]): PrefixNode {
  return joinAll(
    sets.map((set, at) => requestNode(at, set, TOKENS)),
    TOKENS,
  );
}

/** Every node stands for what its children have in common, and every request is there once. */
function check(root: PrefixNode, sets: readonly (readonly number[])[]): void {
  expect(root.parent).toBeNull();
  const requests: number[] = [];
  for (const node of nodesOf(root)) {
    expect(node.tokens).toBe(tokensIn(node.blocks, TOKENS));
    if (node.children === null) {
      requests.push(node.request ?? -1);
      expect(node.blocks).toEqual([...(sets[node.request ?? -1] ?? [])].sort((a, b) => a - b));
      continue;
    }
    expect(node.blocks).toEqual(inBoth(node.children[0].blocks, node.children[1].blocks));
    for (const child of node.children) expect(child.parent).toBe(node);
  }
  expect(requests.sort((a, b) => a - b)).toEqual([...sets.keys()]);
}

describe("a tree of shared prefixes", () => {
  it("holds every request, and at each node what its children have in common, before and after refining", () => {
    const kept = fc.property(anySets, (sets) => {
      const root = built(sets);
      check(root, sets);
      const saved = savedTokens(root);
      const better = refined(root, TOKENS);
      check(better, sets);
      expect(savedTokens(better)).toBeGreaterThanOrEqual(saved);
    });
    fc.assert(kept, { numRuns: 300 });
  });

  it("joins the two that share most each time; ties go to the earliest", () => {
    const greedy = fc.property(anySets, (sets) => {
      let nodes = sets.map((set, at) => ({ name: at, blocks: [...set].sort((a, b) => a - b) }));
      let saved = 0;
      for (;;) {
        let best: { one: (typeof nodes)[number]; other: (typeof nodes)[number]; tokens: number } | null = null;
        for (const [at, one] of nodes.entries()) {
          for (const other of nodes.slice(at + 1)) {
            const tokens = tokensIn(inBoth(one.blocks, other.blocks), TOKENS);
            if (tokens > (best?.tokens ?? 0)) best = { one, other, tokens };
          }
        }
        if (best === null) break;
        const { one, other, tokens } = best;
        saved += tokens;
        const join = { name: one.name, blocks: inBoth(one.blocks, other.blocks) };
        nodes = nodes.filter((node) => node !== other).map((node) => (node === one ? join : node));
      }
      expect(savedTokens(built(sets))).toBe(saved);
    });
    fc.assert(greedy, { numRuns: 300 });
  });

  it("is refined where joining the best two first was not best in the end", () => {
    // 0 and 1 share most, but both share more with others than those two are left with.
    const sets = [
      [0, 1, 2, 3, 4, 5],
      [2, 3, 4, 5, 6, 7],
      [0, 1, 2, 8],
      [5, 6, 7, 9],
    ];
    const ones = new Float64Array(10).fill(1);
    const root = joinAll(
      sets.map((set, at) => requestNode(at, set, ones)),
      ones,
    );
    expect(savedTokens(root)).toBe(5);
    expect(savedTokens(refined(root, ones))).toBe(6);
  });
});
