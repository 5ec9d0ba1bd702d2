import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { alignTo } from "../../../src/core/ordering/ordering.js";
import { ClusterTree, MAX_TICKETS } from "../../../src/core/published/cluster-tree.js";
import type { Label } from "../../../src/core/text/ids.js";
import { labels } from "../cache/served-sequences.js";
import { anyContext, anyTreeEvents, entriesOf, StoredTree, ticket } from "./clustered-contexts.js";

/** A tree that took in these contexts, with tickets and times from 1. */
function grown(...contexts: readonly (readonly number[])[]): ClusterTree {
  const tree = new ClusterTree([], 1, 10_000);
  for (const [at, context] of contexts.entries()) tree.insert(labels(...context), ticket(at + 1), at + 1);
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
      tree.insert(n % 2 === 0 ? labels(3, 1, 2) : labels(1, 2, 3), ticket(10 + n), 10 + n),
    );
    tree.check();
    expect(new Set(leaves).size).toBe(1);
    expect(tree.size).toBe(size);
    expect(entriesOf(tree).find(({ id }) => id === leaves[0])).toMatchObject({ uses: 301, live: MAX_TICKETS });
  });

  it('"reset, then use again; empty first context; a context equal to the intersection of others: all work"', () => {
    const tree = new ClusterTree([], 1, 100);
    expect(tree.insert([], ticket(1), 1)).toBeNull();
    expect(tree.size).toBe(0);
    for (const [at, context] of [[1, 2, 3], [1, 2, 4], [2, 1], [1]].entries()) {
      tree.insert(labels(...context), ticket(at + 2), at + 2);
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
    for (let n = 2; n <= 5; n++) expect(tree.evict(ticket(n))).toBe(true);
    expect(tree.size).toBe(0);
    expect(entriesOf(tree)).toEqual([]);
    tree.insert(labels(4, 5), ticket(9), 9);
    tree.check();
    expect(shapeOf(tree)).toEqual([["0", [4, 5]]]);
  });

  it("holds every request's blocks in one leaf, in the order that a search before it would have given", () => {
    const life = fc.property(anyTreeEvents, anyContext, (events, context) => {
      const { tree } = StoredTree.after(events);
      const known = entriesOf(tree).filter(({ blocks }) => ascending(blocks).join() === ascending(context).join());
      const expected = alignTo(tree.search(context).blocks, context);
      const leaf = tree.insert(context, ticket(1_000), 1_000);
      const entry = entriesOf(tree).find(({ id }) => id === leaf);
      expect(ascending(entry?.blocks ?? [])).toEqual(ascending(context));
      expect(tree.pathOf(ticket(1_000))).toEqual(entry?.searchPath);
      if (known.length === 0) expect(entry?.blocks).toEqual(expected);
    });
    fc.assert(life, { numRuns: 300 });
  });
});

describe("cluster tree, letting go", () => {
  it("keeps its rules whatever happens in whatever order, and a leaf for exactly the requests that it names", () => {
    const life = fc.property(anyTreeEvents, (events) => {
      const stored = new StoredTree();
      const held = new Map<number, readonly Label[]>();
      let requests = 0;
      for (const event of events) {
        const outcome = stored.take(event);
        stored.tree.check();
        if (event.kind === "insert") held.set(++requests, ascending(event.context));
        if (event.kind === "evict") expect(held.delete(event.nth)).toBe(outcome);
        if (event.kind === "forget") {
          for (const [n, context] of held) if (context.some((block) => event.labels.includes(block))) held.delete(n);
        }
        const leaves = new Set([...held.values()].map((context) => context.join()));
        const entries = entriesOf(stored.tree);
        const paths = new Set([...held.keys()].map((n) => stored.tree.pathOf(ticket(n))?.join(".")));
        expect(paths.size).toBe(leaves.size);
        for (const [n, context] of held) {
          const path = stored.tree.pathOf(ticket(n))?.join(".");
          const leaf = entries.find(({ searchPath }) => searchPath.join(".") === path);
          expect(ascending(leaf?.blocks ?? [])).toEqual(context);
        }
      }
    });
    fc.assert(life, { numRuns: 300 });
  });
});

describe("cluster tree, bounds", () => {
  it('"unbounded maps": never holds more nodes than its bound, and evicts the least recently used', () => {
    const tree = new ClusterTree([], 1, 100);
    for (let n = 1; n <= 1_000; n++) {
      tree.insert(labels(n % 7, 10 + (n % 11), n + 5_000), ticket(n), n);
      tree.check();
    }
    expect(tree.size).toBeGreaterThan(80);
    expect(Math.min(...entriesOf(tree).map(({ lastUsed }) => lastUsed))).toBeGreaterThan(900);
  });

  it("never gives up the context that is being served for the bound", () => {
    for (const now of [(n: number) => n, () => 5, (n: number) => 100 - n]) {
      const tree = new ClusterTree([], 1, 3);
      for (let n = 1; n <= 20; n++) {
        tree.insert(labels(1, n + 1), ticket(n), now(n));
        tree.check();
        expect(tree.pathOf(ticket(n))).not.toBeNull();
      }
    }
  });
});
