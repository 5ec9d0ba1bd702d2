import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ClusterNode } from "../../../src/core/published/cluster-tree.js";
import { anyContext, anyTreeEvents, entriesOf, StoredTree } from "./clustered-contexts.js";

const BOUND = 16;
const byId = (a: ClusterNode, b: ClusterNode) => a.id - b.id;
const anyOrder = fc.constantFrom<(a: ClusterNode, b: ClusterNode) => number>(byId, (a, b) => b.id - a.id);

describe("cluster tree, stored as rows", () => {
  it("answers and continues after a reload as if there had been none, in whatever order the rows come back", () => {
    const life = fc.property(anyTreeEvents, anyTreeEvents, anyContext, anyOrder, (before, after, context, order) => {
      const kept = new StoredTree(BOUND);
      const reloaded = new StoredTree(BOUND);
      const compare = () => {
        kept.tree.check();
        expect(kept.rows.size).toBe(kept.tree.size);
        expect(reloaded.tree.search(context)).toEqual(kept.tree.search(context));
        expect(entriesOf(reloaded.tree)).toEqual(entriesOf(kept.tree));
        expect([...reloaded.rows.values()].sort(byId)).toEqual([...kept.rows.values()].sort(byId));
        expect(reloaded.tree.nextId).toBe(kept.tree.nextId);
      };
      for (const event of before) {
        kept.take(event);
        reloaded.take(event);
      }
      reloaded.reload(order);
      reloaded.tree.check();
      compare();
      for (const event of after) {
        expect(reloaded.take(event)).toEqual(kept.take(event));
        compare();
      }
    });
    fc.assert(life, { numRuns: 300 });
  });
});
