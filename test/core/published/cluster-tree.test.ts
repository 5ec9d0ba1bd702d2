import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { alignTo } from "../../../src/core/ordering/ordering.js";
import {
  type ClusterNode,
  ClusterTree,
  contextDistance,
  MAX_HEIGHT,
  positionsOf,
} from "../../../src/core/published/cluster-tree.js";
import type { Label, NodeId } from "../../../src/core/text/ids.js";
import { labels } from "../cache/served-sequences.js";
import { anyContext, anyTreeEvents, entriesOf, plainDistance, plainSearch, StoredTree } from "./clustered-contexts.js";

const ascending = (blocks: readonly Label[]) => [...blocks].sort((a, b) => a - b).join();
const leavesOf = (tree: ClusterTree) => entriesOf(tree).filter(({ isLeaf }) => isLeaf);
const byId = (a: ClusterNode, b: ClusterNode) => a.id - b.id;

describe("context distance", () => {
  it("is eq. 1, the same in both directions, and 0 only between equal contexts", () => {
    fc.assert(
      fc.property(anyContext, anyContext, (a, b) => {
        expect(contextDistance(a, b)).toBe(plainDistance(a, b) ?? 1);
        expect(contextDistance(b, a)).toBe(contextDistance(a, b));
        expect(contextDistance(a, b) === 0).toBe(a.join() === b.join());
      }),
      { numRuns: 500 },
    );
    expect(() => positionsOf(labels(1, 2, 1))).toThrow("twice");
  });
});

describe("cluster tree", () => {
  it("searches as Alg. 1, keeps its rules, and is the same when it is loaded again, in whatever order its rows come back", () => {
    const orders = fc.constantFrom(byId, (a: ClusterNode, b: ClusterNode) => b.id - a.id);
    const bounds = fc.constantFrom(16, 10_000);
    const life = fc.property(
      anyTreeEvents,
      anyContext,
      bounds,
      orders,
      fc.nat(),
      (events, context, bound, order, n) => {
        const [kept, reloaded] = [new StoredTree(bound), new StoredTree(bound)];
        for (const [at, event] of events.entries()) {
          if (at === n % events.length) reloaded.reload(order);
          kept.take(event);
          reloaded.take(event);
          kept.tree.check();
          expect(kept.rows.size).toBe(kept.tree.size);
          expect(entriesOf(reloaded.tree)).toEqual(entriesOf(kept.tree));
          const found = kept.tree.search(context);
          expect(reloaded.tree.search(context)).toEqual(found);
          expect(found.searchPath).toEqual(plainSearch([...kept.rows.values()], context));
        }
      },
    );
    fc.assert(life, { numRuns: 300 });
  });

  it("has a leaf for exactly the contexts that are left, each in the order that a search before it gave (Alg. 2)", () => {
    const life = fc.property(anyTreeEvents, (events) => {
      const { tree } = new StoredTree();
      const held = new Map<string, readonly Label[]>();
      for (const event of events) {
        if (event.kind === "insert") {
          const known = tree.leafOf(event.context);
          const order = known?.blocks ?? alignTo(tree.search(event.context).blocks, event.context);
          tree.insert(event.context, 1);
          expect(tree.leafOf(event.context)?.blocks).toEqual(order);
          held.set(ascending(event.context), event.context);
        } else if (event.kind === "evict") {
          tree.evicted(event.path);
          for (let length = event.path.held + 1; length <= event.path.labels.length; length++)
            held.delete(ascending(event.path.labels.slice(0, length)));
        } else {
          tree.forget(new Set(event.labels));
          for (const [key, context] of held) if (context.some((one) => event.labels.includes(one))) held.delete(key);
        }
        const leaves = leavesOf(tree);
        expect(leaves.map(({ blocks }) => ascending(blocks)).sort()).toEqual([...held.keys()].sort());
        for (const { blocks, searchPath } of leaves) expect(tree.leafOf(blocks)).toEqual({ blocks, searchPath });
      }
    });
    fc.assert(life, { numRuns: 300 });
  });

  it('"1,000 or more children under one node": finds the nearest where all share popular blocks', () => {
    const contexts = [...Array.from({ length: 5_000 }, (_, n) => labels(1, 2, n + 10)), labels(1, 2, 5, 6)];
    const shared = { distance: 0, lastUsed: 1 };
    const leaves = contexts.map((blocks, position): ClusterNode => {
      return { ...shared, id: (position + 2) as NodeId, parent: 1 as NodeId, blocks, position, nextPosition: 0 };
    });
    const root = { ...shared, id: 1 as NodeId, parent: null, blocks: [], position: 0, nextPosition: contexts.length };
    const tree = new ClusterTree([root, ...leaves], 1_000_000);
    expect(tree.search(labels(1, 2, 4_321))).toMatchObject({ searchPath: [4_311], distance: 0 });
    expect(tree.search(labels(6, 5, 2, 1))).toMatchObject({ searchPath: [5_000] });
    expect(tree.search(labels(20_001)).searchPath).toEqual([]);
  });

  it('"the same request 300 times adds one leaf, not 300", in whatever order its blocks come', () => {
    const tree = new ClusterTree([], 10_000);
    for (const context of [labels(3, 1, 2), labels(5, 6), labels(3, 8)]) tree.insert(context, 1);
    const { size } = tree;
    for (let n = 0; n < 300; n++) tree.insert(n % 2 === 0 ? labels(3, 1, 2) : labels(1, 2, 3), 10 + n);
    tree.check();
    expect(tree.size).toBe(size);
    expect(Math.max(...entriesOf(tree).map(({ lastUsed }) => lastUsed))).toBe(309);
  });

  it('"reset, then use again; empty first context; a context equal to the intersection of others: all work"', () => {
    const tree = new ClusterTree([], 100);
    tree.insert([], 1);
    expect(tree.size).toBe(0);
    for (const context of [labels(1, 2, 3), labels(1, 2, 4), labels(2, 1), labels(1)]) {
      tree.insert(context, 2);
      tree.check();
    }
    expect(entriesOf(tree).map(({ searchPath, blocks }) => [searchPath.join("."), blocks])).toEqual([
      ["0", [1, 2]],
      ["0.0", [1, 2, 3]],
      ["0.1", [1, 2, 4]],
      ["0.2", [1]],
      ["0.2.0", [1, 2]],
      ["0.2.1", [1]],
    ]);
    for (const path of [labels(1, 2, 3), labels(1, 2, 4)]) tree.evicted({ labels: path, held: 0 });
    expect(tree.size).toBe(0);
    tree.insert(labels(4, 5), 9);
    tree.check();
    expect(leavesOf(tree).map(({ blocks }) => blocks)).toEqual([labels(4, 5)]);
  });
});

describe("cluster tree, bounds", () => {
  it("goes no deeper than its bound, so that no search path grows without end", () => {
    const tree = new ClusterTree([], 100_000);
    const blocks = Array.from({ length: 200 }, (_, n) => n + 1);
    for (let n = 0; n < 150; n++) {
      tree.insert(labels(...blocks.slice(0, 200 - n), n + 1_000), n);
      tree.insert(labels(...blocks.slice(0, 1 + n), n + 2_000), n);
    }
    tree.check();
    expect(Math.max(...entriesOf(tree).map(({ searchPath }) => searchPath.length))).toBe(MAX_HEIGHT);
  });

  it('"unbounded maps": never holds more nodes than its bound, and evicts the least recently used', () => {
    const tree = new ClusterTree([], 100);
    for (let n = 1; n <= 1_000; n++) {
      tree.insert(labels(n % 7, 10 + (n % 11), n + 5_000), n);
      tree.check();
    }
    expect(tree.size).toBeGreaterThan(80);
    expect(Math.min(...entriesOf(tree).map(({ lastUsed }) => lastUsed))).toBeGreaterThan(900);
  });

  it("never gives up the context that is being served for the bound", () => {
    for (const now of [(n: number) => n, () => 5, (n: number) => 100 - n]) {
      const tree = new ClusterTree([], 3);
      for (let n = 1; n <= 20; n++) {
        tree.insert(labels(1, n + 1), now(n));
        tree.check();
        expect(tree.leafOf(labels(1, n + 1))).not.toBeNull();
      }
    }
  });
});
