import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ClusterNode, ClusterTree } from "../../../src/core/published/cluster-tree.js";
import { clusterContexts } from "../../../src/core/published/clustering.js";
import { labels } from "../context-index/served-sequences.js";
import { anyContext, anyTreeEvents, entriesOf, StoredTree, ticket } from "./clustered-contexts.js";

const BOUND = 16;
const byId = (a: ClusterNode, b: ClusterNode) => a.id - b.id;
const anyOrder = fc.constantFrom<(a: ClusterNode, b: ClusterNode) => number>(byId, (a, b) => b.id - a.id);

describe("cluster tree, stored as rows", () => {
  it("hands over exactly the rows that it has", () => {
    const life = fc.property(anyTreeEvents, (events) => {
      const stored = new StoredTree(BOUND);
      for (const event of events) {
        stored.take(event);
        stored.tree.check();
        expect(stored.rows.size).toBe(stored.tree.size);
      }
    });
    fc.assert(life, { numRuns: 300 });
  });

  it("answers and continues after a reload as if there had been none, in whatever order the rows come back", () => {
    const life = fc.property(anyTreeEvents, anyTreeEvents, anyContext, anyOrder, (before, after, context, order) => {
      const kept = new StoredTree(BOUND);
      const reloaded = new StoredTree(BOUND);
      const compare = () => {
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

  it("finds among more children than it examines what it found before a reload", () => {
    const kept = new StoredTree();
    const reloaded = new StoredTree();
    for (let n = 0; n < 300; n++) {
      const context = labels(1, 100 + n, ...(n % 5 === 0 ? [] : [2]));
      for (const stored of [kept, reloaded]) stored.take({ kind: "insert", context });
    }
    reloaded.reload((a, b) => b.id - a.id);
    for (const probe of [labels(1, 2), labels(2, 1, 350), labels(9, 1), labels(1, 350)]) {
      expect(reloaded.tree.search(probe)).toEqual(kept.tree.search(probe));
    }
  });

  it("gives up leaves of the same age in the same order after a reload", () => {
    const contexts = Array.from({ length: 10 }, (_, n) => ({ ticket: ticket(n), blocks: labels(n + 1, n + 20) }));
    const { nodes, nextId } = clusterContexts(contexts, 1, 3);
    const [kept, reloaded] = [nodes, nodes.toReversed()].map((rows) => {
      const tree = new ClusterTree(rows, nextId, nodes.length);
      tree.insert(labels(99), ticket(99), 3);
      return tree.stored();
    });
    expect(kept?.length).toBeLessThan(nodes.length);
    expect(reloaded).toEqual(kept);
  });

  it("hands over every change once, and rows that later changes do not reach", () => {
    const tree = new ClusterTree([], 1, BOUND);
    tree.insert(labels(1, 2), ticket(1), 1);
    const { upserted } = tree.drain();
    expect(upserted).toHaveLength(2);
    expect(tree.drain()).toEqual({ upserted: [], removed: [] });
    const before = structuredClone(upserted);
    tree.insert(labels(1, 3), ticket(2), 2);
    tree.insert(labels(1, 2), ticket(3), 3);
    expect(upserted).toEqual(before);
  });

  it("never reuses an id, even after everything was evicted and reloaded", () => {
    const tree = new ClusterTree([], 1, BOUND);
    const leaf = tree.insert(labels(1), ticket(1), 1);
    tree.evict(ticket(1));
    expect(new ClusterTree([], tree.nextId, BOUND).insert(labels(1), ticket(2), 2)).toBeGreaterThan(leaf ?? 0);
  });

  it("refuses rows whose parent is missing", () => {
    const tree = new ClusterTree([], 1, BOUND);
    tree.insert(labels(1), ticket(1), 1);
    const orphan = tree.drain().upserted.filter(({ parent }) => parent !== null);
    expect(() => new ClusterTree(orphan, 9, BOUND)).toThrow("no parent");
  });
});
