import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { alignTo } from "../../../src/core/ordering/ordering.js";
import { ClusterTree } from "../../../src/core/published/cluster-tree.js";
import type { Label } from "../../../src/core/text/ids.js";
import { labels } from "../cache/served-sequences.js";
import { anyContext, anyTreeEvents, entriesOf, StoredTree } from "./clustered-contexts.js";

/** A tree that took in these contexts, at times from 1. */
function grown(...contexts: readonly (readonly number[])[]): ClusterTree {
  const tree = new ClusterTree([], 1, 10_000);
  for (const [at, context] of contexts.entries()) tree.insert(labels(...context), at + 1);
  tree.check();
  return tree;
}

/** What a tree holds, as search paths with blocks. */
function shapeOf(tree: ClusterTree): [string, readonly Label[]][] {
  return entriesOf(tree).map(({ searchPath, blocks }) => [searchPath.join("."), blocks]);
}

const ascending = (blocks: readonly Label[]) => [...blocks].sort((a, b) => a - b);

describe("cluster tree, inserting", () => {
  it('"the same request 300 times adds one leaf, not 300", in whatever order its blocks come', () => {
    const tree = grown([3, 1, 2], [5, 6], [3, 8]);
    const { size } = tree;
    const leaves = Array.from({ length: 300 }, (_, n) =>
      tree.insert(n % 2 === 0 ? labels(3, 1, 2) : labels(1, 2, 3), 10 + n),
    );
    tree.check();
    expect(new Set(leaves).size).toBe(1);
    expect(tree.size).toBe(size);
    expect(entriesOf(tree).find(({ id }) => id === leaves[0])).toMatchObject({ lastUsed: 309 });
  });

  it('"reset, then use again; empty first context; a context equal to the intersection of others: all work"', () => {
    const tree = new ClusterTree([], 1, 100);
    expect(tree.insert([], 1)).toBeNull();
    expect(tree.size).toBe(0);
    for (const [at, context] of [[1, 2, 3], [1, 2, 4], [2, 1], [1]].entries()) {
      tree.insert(labels(...context), at + 2);
      tree.check();
    }
    expect(shapeOf(tree)).toEqual([
      ["0", [1, 2]],
      ["0.0", [1, 2, 3]],
      ["0.1", [1, 2, 4]],
      ["0.2", [1]],
      ["0.2.0", [1, 2]],
      ["0.2.1", [1]],
    ]);
    for (const path of [labels(1, 2, 3), labels(1, 2, 4)]) tree.evicted({ labels: path, held: 0 });
    expect(tree.size).toBe(0);
    expect(entriesOf(tree)).toEqual([]);
    tree.insert(labels(4, 5), 9);
    tree.check();
    expect(shapeOf(tree)).toEqual([["0", [4, 5]]]);
  });

  it("holds every request's blocks in one leaf, in the order that a search before it would have given", () => {
    const life = fc.property(anyTreeEvents, anyContext, (events, context) => {
      const { tree } = StoredTree.after(events);
      const known = entriesOf(tree).filter(({ blocks }) => ascending(blocks).join() === ascending(context).join());
      const expected = alignTo(tree.search(context).blocks, context);
      const leaf = tree.insert(context, 1_000);
      const entry = entriesOf(tree).find(({ id }) => id === leaf);
      expect(ascending(entry?.blocks ?? [])).toEqual(ascending(context));
      expect(tree.leafOf(context)).toEqual({ blocks: entry?.blocks, searchPath: entry?.searchPath });
      if (known.length === 0) expect(entry?.blocks).toEqual(expected);
    });
    fc.assert(life, { numRuns: 300 });
  });
});

describe("cluster tree, letting go", () => {
  it("keeps its rules whatever happens in whatever order, and a leaf for exactly the contexts that are left", () => {
    const life = fc.property(anyTreeEvents, (events) => {
      const stored = new StoredTree();
      const held = new Map<string, readonly Label[]>();
      for (const event of events) {
        stored.take(event);
        stored.tree.check();
        if (event.kind === "insert") held.set(ascending(event.context).join(), event.context);
        if (event.kind === "evict")
          for (let length = event.path.held + 1; length <= event.path.labels.length; length++)
            held.delete(ascending(event.path.labels.slice(0, length)).join());
        if (event.kind === "forget")
          for (const [key, context] of held) if (context.some((one) => event.labels.includes(one))) held.delete(key);
        const leaves = entriesOf(stored.tree).filter(({ isLeaf }) => isLeaf);
        expect(leaves.map(({ blocks }) => ascending(blocks).join()).sort()).toEqual([...held.keys()].sort());
      }
    });
    fc.assert(life, { numRuns: 300 });
  });
});

describe("cluster tree, bounds", () => {
  it('"unbounded maps": never holds more nodes than its bound, and evicts the least recently used', () => {
    const tree = new ClusterTree([], 1, 100);
    for (let n = 1; n <= 1_000; n++) {
      tree.insert(labels(n % 7, 10 + (n % 11), n + 5_000), n);
      tree.check();
    }
    expect(tree.size).toBeGreaterThan(80);
    expect(Math.min(...entriesOf(tree).map(({ lastUsed }) => lastUsed))).toBeGreaterThan(900);
  });

  it("never gives up the context that is being served for the bound", () => {
    for (const now of [(n: number) => n, () => 5, (n: number) => 100 - n]) {
      const tree = new ClusterTree([], 1, 3);
      for (let n = 1; n <= 20; n++) {
        tree.insert(labels(1, n + 1), now(n));
        tree.check();
        expect(tree.leafOf(labels(1, n + 1))).not.toBeNull();
      }
    }
  });
});
