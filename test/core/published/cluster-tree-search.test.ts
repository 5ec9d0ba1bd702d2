import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ClusterNode, ClusterTree, MAX_CANDIDATES, MAX_HEIGHT } from "../../../src/core/published/cluster-tree.js";
import type { NodeId } from "../../../src/core/text/ids.js";
import { label, labels } from "../cache/served-sequences.js";
import { anyContext, anyTreeEvents, entriesOf, plainSearch, StoredTree } from "./clustered-contexts.js";

/** A tree with a leaf per context, all under the root. */
function flatTree(contexts: readonly (readonly number[])[]): ClusterTree {
  const shared = { distance: 0, lastUsed: 1 };
  const leaves = contexts.map(
    (context, at): ClusterNode => ({
      ...shared,
      id: (at + 2) as NodeId,
      parent: 1 as NodeId,
      blocks: labels(...context),
      position: at,
      nextPosition: 0,
    }),
  );
  const root: ClusterNode = {
    ...shared,
    id: 1 as NodeId,
    parent: null,
    blocks: [],
    position: 0,
    nextPosition: contexts.length,
  };
  return new ClusterTree([root, ...leaves], contexts.length + 2, 1_000_000);
}

describe("cluster tree, search", () => {
  it("goes where a plain scan of all children goes, in any tree that was grown", () => {
    const anywhere = fc.property(anyTreeEvents, anyContext, (events, context) => {
      const stored = StoredTree.after(events);
      expect(stored.tree.search(context).searchPath).toEqual(plainSearch([...stored.rows.values()], context));
    });
    fc.assert(anywhere, { numRuns: 500 });
  });

  it("goes where a plain scan of all children goes, at nodes with many children", () => {
    const wideContext = fc.uniqueArray(fc.integer({ min: 1, max: 60 }).map(label), { minLength: 1, maxLength: 5 });
    const contexts = fc.array(wideContext, { minLength: 10, maxLength: 60, size: "max" });
    let widest = 0;
    const anywhere = fc.property(contexts, wideContext, (served, context) => {
      const tree = new ClusterTree([], 1, 10_000);
      for (const [at, each] of served.entries()) tree.insert(each, at);
      tree.check();
      const rows = tree.stored();
      widest = Math.max(widest, rows.filter(({ parent }) => parent === rows[0]?.id).length);
      expect(tree.search(context).searchPath).toEqual(plainSearch(rows, context));
    });
    fc.assert(anywhere, { numRuns: 500 });
    // With more than eight children a node inverts them.
    expect(widest).toBeGreaterThan(16);
  });

  it('"1,000 or more children under one node": looks only at those that share a block, and stops when none can be nearer', () => {
    const wide = flatTree(Array.from({ length: 5_000 }, (_, n) => [n * 2 + 1, n * 2 + 2]));
    expect(wide.search(labels(5, 777, 9_001, 6))).toMatchObject({ searchPath: [2], examined: 3 });
    expect(wide.search(labels(5, 6))).toMatchObject({ searchPath: [2], distance: 0, examined: 1 });
    expect(wide.search(labels(5, 777, 9_001))).toMatchObject({ searchPath: [2], examined: 3 });
    expect(wide.search(labels(20_001)).examined).toBe(0);
  });

  it('"1,000 or more children under one node": examines a bounded number also where all of them share a popular block', () => {
    const popular = Array.from({ length: 5_000 }, (_, n) => [1, 2, n + 10]);
    const tree = flatTree([...popular, [1, 2, 5, 6]]);
    expect(tree.search(labels(1, 2, 4_321)).examined).toBeLessThanOrEqual(MAX_CANDIDATES);
    // The rarest block names the right one at once.
    expect(tree.search(labels(1, 2, 4_321))).toMatchObject({ searchPath: [4_311], distance: 0, examined: 1 });
    expect(tree.search(labels(6, 5, 2, 1))).toMatchObject({ searchPath: [5_000], examined: 1 });
  });

  it("goes no deeper than its bound, so that no search path grows without end", () => {
    const tree = new ClusterTree([], 1, 100_000);
    const blocks = Array.from({ length: 200 }, (_, n) => n + 1);
    for (let n = 0; n < 150; n++) {
      tree.insert(labels(...blocks.slice(0, 200 - n), ...[n + 1_000]), n);
      tree.insert(labels(...blocks.slice(0, 1 + n), ...[n + 2_000]), n);
    }
    tree.check();
    const deepest = entriesOf(tree).reduce((most, { searchPath }) => Math.max(most, searchPath.length), 0);
    expect(deepest).toBe(MAX_HEIGHT);
  });
});
