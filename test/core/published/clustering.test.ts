import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { alignTo } from "../../../src/core/ordering/ordering.js";
import { ClusterTree } from "../../../src/core/published/cluster-tree.js";
import { clusterContexts } from "../../../src/core/published/clustering.js";
import type { Label } from "../../../src/core/text/ids.js";
import { labels } from "../cache/served-sequences.js";
import { anyContext, entriesOf } from "./clustered-contexts.js";

const ascending = (blocks: readonly Label[]) => [...blocks].sort((a, b) => a - b).join();

describe("clustering (Alg. 4)", () => {
  const anyContexts = fc.array(anyContext, { minLength: 1, maxLength: 12 });

  it("loads into a cluster tree that keeps its rules, holds every context once, and goes on", () => {
    const loads = fc.property(anyContexts, anyContext, (contexts, next) => {
      const { nodes, nextId } = clusterContexts(contexts, 1, 7);
      const tree = new ClusterTree(nodes, nextId, 1_000);
      tree.check();
      for (const context of contexts) expect(ascending(tree.leafOf(context)?.blocks ?? [])).toBe(ascending(context));
      const leaves = entriesOf(tree).filter(({ isLeaf }) => isLeaf);
      expect(leaves).toHaveLength(new Set(contexts.map(ascending)).size);
      tree.insert(next, 100);
      tree.check();
    });
    fc.assert(loads, { numRuns: 300 });
  });
});

describe("alignment (Alg. 2)", () => {
  it("puts the prefix's blocks that the context has first, and the rest after them in the context's order", () => {
    expect(alignTo(labels(7, 3, 1), labels(1, 2, 3, 4))).toEqual([3, 1, 2, 4]);
    expect(alignTo([], labels(2, 1))).toEqual([2, 1]);
    expect(alignTo(labels(1), [])).toEqual([]);
  });
});
