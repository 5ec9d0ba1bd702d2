import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { alignTo } from "../../../src/core/ordering/ordering.js";
import { ClusterTree, MAX_TICKETS } from "../../../src/core/published/cluster-tree.js";
import type { Label } from "../../../src/core/text/ids.js";
import { labels } from "../context-index/served-sequences.js";
import { anyContext, anyTreeEvents, entriesOf, plainDistance, StoredTree, ticket } from "./clustered-contexts.js";

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
  it("makes a leaf under the root of what shares no block", () => {
    expect(shapeOf(grown([1, 2], [3, 4]))).toEqual([
      ["0", [1, 2]],
      ["1", [3, 4]],
    ]);
  });

  it("puts a leaf that matches and the new context under what they have in common, the new one ordered behind it", () => {
    expect(shapeOf(grown([1, 2, 3], [9, 3, 1]))).toEqual([
      ["0", [1, 3]],
      ["0.0", [1, 2, 3]],
      ["0.1", [1, 3, 9]],
    ]);
  });

  it("appends to an inner node that matches, whose other children it leaves alone", () => {
    const tree = grown([1, 2, 3], [1, 2, 4]);
    tree.drain();
    tree.insert(labels(1, 2, 5), ticket(3), 3);
    expect(shapeOf(tree)).toEqual([
      ["0", [1, 2]],
      ["0.0", [1, 2, 3]],
      ["0.1", [1, 2, 4]],
      ["0.2", [1, 2, 5]],
    ]);
    // The new leaf, and the parent's next position.
    expect(tree.drain().upserted.map(({ blocks }) => blocks)).toEqual([
      [1, 2, 5],
      [1, 2],
    ]);
  });

  it("keeps the distance at which an inner node was made, and sums up what is below it", () => {
    const tree = grown([1, 2, 3], [1, 2, 4], [1, 2, 4], [7]);
    const [inner, first, second, other] = entriesOf(tree);
    expect(inner).toMatchObject({ blocks: [1, 2], uses: 3, live: 3, lastUsed: 3 });
    expect(inner?.distance).toBe(plainDistance(labels(1, 2, 3), labels(1, 2, 4)));
    expect(first).toMatchObject({ uses: 1, live: 1, lastUsed: 1, distance: 0 });
    expect(second).toMatchObject({ uses: 2, live: 2, lastUsed: 3, distance: 0 });
    expect(other).toMatchObject({ blocks: [7], uses: 1 });
  });

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

  it("refuses a context that lists a block twice, and stays as it was", () => {
    const tree = grown([1, 2]);
    expect(() => tree.insert(labels(3, 3), ticket(9), 9)).toThrow("twice");
    tree.check();
    expect(tree.size).toBe(2);
  });

  it("moves a ticket that is given again", () => {
    const tree = grown([1, 2], [3]);
    tree.insert(labels(4), ticket(1), 3);
    tree.check();
    expect(shapeOf(tree).map(([, blocks]) => blocks)).toEqual([[3], [4]]);
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

  it("prunes unary chains: a leaf that is left alone takes its parent's place", () => {
    const tree = grown([1, 2, 3], [1, 2, 4], [1, 2, 4, 5]);
    expect(shapeOf(tree)).toEqual([
      ["0", [1, 2]],
      ["0.0", [1, 2, 3]],
      ["0.1", [1, 2, 4]],
      ["0.1.0", [1, 2, 4]],
      ["0.1.1", [1, 2, 4, 5]],
    ]);
    expect(tree.evict(ticket(2))).toBe(true);
    tree.check();
    expect(shapeOf(tree)).toEqual([
      ["0", [1, 2]],
      ["0.0", [1, 2, 3]],
      ["0.1", [1, 2, 4, 5]],
    ]);
    tree.evict(ticket(3));
    expect(shapeOf(tree)).toEqual([["0", [1, 2, 3]]]);
    expect(tree.evict(ticket(3))).toBe(false);
    expect(tree.evict(ticket(99))).toBe(false);
  });

  it("keeps a leaf as long as one of its requests was not evicted", () => {
    const tree = grown([1, 2], [2, 1]);
    tree.evict(ticket(1));
    expect(tree.pathOf(ticket(1))).toBeNull();
    expect(tree.pathOf(ticket(2))).toEqual([0]);
    tree.evict(ticket(2));
    expect(tree.size).toBe(0);
  });

  it("never gives a child position twice under one parent", () => {
    const tree = grown([1], [2]);
    tree.evict(ticket(2));
    tree.insert(labels(3), ticket(3), 3);
    expect(shapeOf(tree)).toEqual([
      ["0", [1]],
      ["2", [3]],
    ]);
  });

  it("forgets blocks: no node names them, and what other contexts have in common stays", () => {
    const tree = grown([1, 2, 3], [1, 2, 4], [2, 7]);
    tree.forget(new Set(labels(3, 7)));
    tree.check();
    expect(shapeOf(tree)).toEqual([["0", [1, 2, 4]]]);
    const never = fc.property(anyTreeEvents, fc.uniqueArray(fc.integer({ min: 1, max: 9 })), (events, gone) => {
      const grew = StoredTree.after(events).tree;
      grew.forget(new Set(labels(...gone)));
      grew.check();
      for (const { blocks } of entriesOf(grew)) expect(blocks.filter((block) => gone.includes(block))).toEqual([]);
    });
    fc.assert(never, { numRuns: 300 });
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

  it("keeps what is used again when the bound is reached", () => {
    const tree = new ClusterTree([], 1, 30);
    for (let n = 1; n <= 300; n++) {
      tree.insert(labels(n + 100), ticket(2 * n), 2 * n);
      tree.insert(labels(7, 8), ticket(2 * n + 1), 2 * n + 1);
    }
    expect(tree.search(labels(7, 8)).distance).toBe(0);
    expect(entriesOf(tree).find(({ blocks }) => blocks[0] === 7)).toMatchObject({ uses: 300, live: MAX_TICKETS });
  });

  it("keeps the newest tickets of a leaf, and removes the leaf with them", () => {
    const tree = new ClusterTree([], 1, 30);
    for (let n = 1; n <= MAX_TICKETS + 5; n++) tree.insert(labels(1), ticket(n), n);
    tree.check();
    expect(tree.evict(ticket(5))).toBe(false);
    for (let n = 6; n <= MAX_TICKETS + 5; n++) expect(tree.evict(ticket(n))).toBe(true);
    expect(tree.size).toBe(0);
  });
});
