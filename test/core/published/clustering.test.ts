import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { alignTo } from "../../../src/core/ordering/ordering.js";
import { type ClusterNode, ClusterTree } from "../../../src/core/published/cluster-tree.js";
import { clusterContexts } from "../../../src/core/published/clustering.js";
import type { Label } from "../../../src/core/text/ids.js";
import { labels } from "../cache/served-sequences.js";
import { anyContext, entriesOf, plainDistance, ticket } from "./clustered-contexts.js";

function clustered(contexts: readonly (readonly Label[])[]): readonly ClusterNode[] {
  return clusterContexts(
    contexts.map((blocks, at) => ({ ticket: ticket(at + 1), blocks })),
    1,
    7,
  ).nodes;
}

const ascending = (blocks: readonly Label[]) => [...blocks].sort((a, b) => a - b).join();

/** Mean distance between the contexts of two clusters: average linkage, word for word. */
function meanDistance(a: readonly (readonly Label[])[], b: readonly (readonly Label[])[]): number {
  const distances = a.flatMap((x) => b.map((y) => plainDistance(x, y) ?? 1));
  return distances.reduce((sum, distance) => sum + distance, 0) / distances.length;
}

describe("clustering (Alg. 4)", () => {
  const anyContexts = fc.array(anyContext, { minLength: 1, maxLength: 12 });

  it("loads into a cluster tree that keeps its rules, holds every context once, and goes on", () => {
    const loads = fc.property(anyContexts, anyContext, (contexts, next) => {
      const { nodes, nextId } = clusterContexts(
        contexts.map((blocks, at) => ({ ticket: ticket(at + 1), blocks })),
        1,
        7,
      );
      const tree = new ClusterTree(nodes, nextId, 1_000);
      tree.check();
      for (const [at, context] of contexts.entries()) {
        const path = tree.pathOf(ticket(at + 1))?.join();
        const leaf = entriesOf(tree).find(({ searchPath }) => searchPath.join() === path);
        expect(ascending(leaf?.blocks ?? [])).toBe(ascending(context));
        expect(leaf?.uses).toBe(contexts.filter((other) => ascending(other) === ascending(context)).length);
      }
      tree.insert(next, ticket(100), 100);
      tree.check();
    });
    fc.assert(loads, { numRuns: 300 });
  });

  it("merges the nearest two clusters each time, by average linkage", () => {
    const distinct = fc.uniqueArray(anyContext, { minLength: 2, maxLength: 9, selector: ascending });
    const linkage = fc.property(distinct, (contexts) => {
      // A block that all share, so that no merge is left out of the tree.
      const shared = contexts.map((context) => [...labels(99), ...context]);
      const nodes = clustered(shared);
      const contextsIn = (node: ClusterNode): (readonly Label[])[] => [
        ...node.tickets.map((n) => shared[n - 1] ?? []),
        ...nodes.filter(({ parent }) => parent === node.id).flatMap(contextsIn),
      ];
      const merges = nodes.filter(({ parent, tickets }) => parent !== null && tickets.length === 0);
      expect(merges).toHaveLength(shared.length - 1);
      // In the order in which they were made; of equally near ones, what was merged again came first.
      merges.sort((a, b) =>
        Math.abs(a.distance - b.distance) < 1e-9
          ? contextsIn(a).length - contextsIn(b).length
          : a.distance - b.distance,
      );
      let clusters = shared.map((context) => [context as readonly Label[]]);
      for (const merge of merges) {
        const [left = [], right = []] = nodes.filter(({ parent }) => parent === merge.id).map(contextsIn);
        expect(merge.distance).toBeCloseTo(meanDistance(left, right), 9);
        const all = clusters.flatMap((a, at) => clusters.slice(at + 1).map((b) => meanDistance(a, b)));
        expect(merge.distance).toBeLessThanOrEqual(Math.min(...all) + 1e-9);
        const joined = contextsIn(merge);
        clusters = [...clusters.filter(([first]) => first === undefined || !joined.includes(first)), joined];
      }
    });
    fc.assert(linkage, { numRuns: 300 });
  });
});

describe("alignment (Alg. 2)", () => {
  it("puts the prefix's blocks that the context has first, and the rest after them in the context's order", () => {
    expect(alignTo(labels(7, 3, 1), labels(1, 2, 3, 4))).toEqual([3, 1, 2, 4]);
    expect(alignTo([], labels(2, 1))).toEqual([2, 1]);
    expect(alignTo(labels(1), [])).toEqual([]);
  });
});
