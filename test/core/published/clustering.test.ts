import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contextComponents, contextParts } from "../../../src/core/batch/prefix-tree.js";
import { ClusterTree, contextDistance } from "../../../src/core/published/cluster-tree.js";
import {
  averageLinkage,
  clusterContexts,
  distanceSteps,
  type Merge,
  schedule,
} from "../../../src/core/published/clustering.js";
import type { Label } from "../../../src/core/text/ids.js";
import { label } from "../cache/served-sequences.js";
import { anyContext, entriesOf } from "./clustered-contexts.js";

type Contexts = readonly (readonly Label[])[];

/** Few blocks, so that most distances come more than once. */
const anyContexts: fc.Arbitrary<Contexts> = fc.array(anyContext, { minLength: 1, maxLength: 14 });
/** Alg. 4 word for word: the nearest two of all clusters, each time, by the mean of the distances of their contexts. */
function plainLinkage(contexts: Contexts): Merge[] {
  const steps = distanceSteps(contexts.length, Math.max(...contexts.map(({ length }) => length)));
  const between = contexts.map((a) => contexts.map((b) => BigInt(Math.round(contextDistance(a, b) * steps))));
  const clusters = new Map(contexts.map((_, at) => [at, [at]]));
  const merges: Merge[] = [];
  while (clusters.size > 1) {
    let best: { first: number; second: number; sum: bigint; pairs: bigint } | null = null;
    const names = [...clusters.keys()].sort((a, b) => a - b);
    for (const first of names) {
      for (const second of names.filter((name) => name > first)) {
        const [one = [], other = []] = [clusters.get(first), clusters.get(second)];
        const sum = one.flatMap((i) => other.map((j) => between[i]?.[j] ?? 0n)).reduce((all, each) => all + each, 0n);
        const pairs = BigInt(one.length * other.length);
        if (best === null || sum * best.pairs < best.sum * pairs) best = { first, second, sum, pairs };
      }
    }
    if (best === null) break;
    const { first, second, sum, pairs } = best;
    merges.push({ first, second, distance: Number(sum) / Number(pairs) / steps });
    clusters.set(first, [...(clusters.get(first) ?? []), ...(clusters.get(second) ?? [])]);
    clusters.delete(second);
  }
  return merges;
}

/** The tree that merges make, as text: children in order, distances to nine digits. */
function treeOf(merges: readonly Merge[], contexts: Contexts): string {
  const clusters = new Map(contexts.map((_, at) => [at, `${at}`]));
  for (const { first, second, distance } of merges) {
    clusters.set(first, `(${clusters.get(first)} ${clusters.get(second)} ${distance.toFixed(9)})`);
    clusters.delete(second);
  }
  return [...clusters.values()].join();
}

const distinct = (contexts: Contexts) => [...new Map(contexts.map((c) => [[...c].sort().join(), c])).values()];

describe("average linkage along a nearest-neighbour chain", () => {
  it("makes the tree that merging the nearest two each time makes, ties included", () => {
    const same = fc.property(anyContexts, (contexts) => {
      expect(treeOf(averageLinkage(contexts), contexts)).toBe(treeOf(plainLinkage(contexts), contexts));
    });
    fc.assert(same, { numRuns: 500 });
  });

  it("counts distances in steps whose sums stay exact", () => {
    for (const contexts of [2, 2_000, 12_000, 100_000]) {
      const most = ((contexts * contexts) / 4) * distanceSteps(contexts, 100) * (1 + 0.001 * 100);
      expect(most).toBeLessThanOrEqual(2 ** 53);
      expect(distanceSteps(contexts, 100)).toBeGreaterThanOrEqual(2 ** 20);
    }
  });
});

describe("contexts that hang together", () => {
  it("are clustered as among all others, since strangers merge last", () => {
    const spread = fc.array(
      fc.tuple(fc.nat({ max: 3 }), anyContext).map(([user, blocks]) => blocks.map((b) => label(user * 10 + b))),
      { minLength: 1, maxLength: 14 },
    );
    const same = fc.property(spread, (all) => {
      const contexts = distinct(all);
      const joined = treeOf(
        plainLinkage(contexts).filter(({ distance }) => distance < 1),
        contexts,
      );
      const apart = contextComponents(contexts).map((component) => {
        const members = component.map((at) => contexts[at] ?? []);
        const steps = distanceSteps(members.length, 9);
        const merges = averageLinkage(members).map(({ first, second, distance }) => {
          expect(distance).toBeLessThan(1 - 0.5 / steps);
          return { first: component[first] ?? -1, second: component[second] ?? -1, distance };
        });
        return merges;
      });
      expect(treeOf(apart.flat(), contexts)).toBe(joined);
    });
    fc.assert(same, { numRuns: 200 });
  });
});

describe("parts of contexts", () => {
  it("hold every context once, stay small, and keep the order", () => {
    const parts = fc.property(anyContexts, fc.integer({ min: 1, max: 5 }), (all, most) => {
      const contexts = distinct(all);
      const found = contextParts(contexts, [...contexts.keys()], most);
      expect(found.flat().sort((a, b) => a - b)).toEqual([...contexts.keys()]);
      for (const part of found) {
        expect(part.length).toBeGreaterThan(0);
        expect(part.length).toBeLessThanOrEqual(most);
        expect(part).toEqual([...part].sort((a, b) => a - b));
      }
    });
    fc.assert(parts, { numRuns: 200 });
  });
});

describe("clustering (Alg. 4)", () => {
  it("makes a tree that keeps its rules, holds every context once, and goes on, also in parts", () => {
    const options = fc.constantFrom({}, { maxExact: 3, partSize: 2 });
    const loads = fc.property(anyContexts, anyContext, options, (contexts, next, parts) => {
      const tree = new ClusterTree(clusterContexts(contexts, parts), 1_000);
      tree.check();
      for (const context of contexts)
        expect([...(tree.leafOf(context)?.blocks ?? [])].sort()).toEqual([...context].sort());
      expect(entriesOf(tree).filter(({ isLeaf }) => isLeaf)).toHaveLength(distinct(contexts).length);
      tree.insert(next, 100);
      tree.check();
    });
    fc.assert(loads, { numRuns: 400 });
  });
});

describe("schedule (Alg. 5)", () => {
  it("runs what shares the first step of its path back to back, larger groups first, longer paths first in a group", () => {
    expect(schedule([[1], [0, 2], [0, 1, 5], [2, 0], [0], [2, 1, 1]])).toEqual([2, 1, 4, 5, 3, 0]);
  });
});
