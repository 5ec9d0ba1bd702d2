import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ContextIndex } from "../../../src/core/context-index/context-index.js";
import type { Label, NodeId } from "../../../src/core/text/ids.js";
import { anyEvents, ELSEWHERE, HERE, isHeld, label, labels, ServedSequences } from "./served-sequences.js";

/** What an index holds, as sequences with their search paths. */
function shapeOf(index: ContextIndex): [readonly number[], readonly Label[]][] {
  return index.entries(1_000).map(({ searchPath, labels: held }) => [searchPath, held]);
}

function wanting(...numbers: readonly number[]): Map<Label, number> {
  return new Map(numbers.map((n) => [label(n), 1]));
}

describe("context index", () => {
  it("keeps a sequence as one node below its anchor", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    expect(shapeOf(served.index)).toEqual([
      [[], []],
      [[0], [1, 2, 3]],
    ]);
  });

  it("splits a node where a sequence leaves it, and gives each branch its own position", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    served.serve(HERE, labels(1, 2, 4));
    served.serve(HERE, labels(5));
    expect(shapeOf(served.index)).toEqual([
      [[], []],
      [[0], [1, 2]],
      [
        [0, 0],
        [1, 2, 3],
      ],
      [
        [0, 1],
        [1, 2, 4],
      ],
      [[1], [5]],
    ]);
  });

  it("counts uses on the way, live requests where they end, and the request that used a node last", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2));
    served.serve(HERE, labels(1, 3));
    served.serve(HERE, labels(1, 3));
    const counts = served.index
      .entries(10)
      .map(({ labels: held, uses, live, lastUsed }) => [held, uses, live, lastUsed]);
    expect(counts).toEqual([
      [[], 3, 0, 3],
      [[1], 3, 0, 3],
      [[1, 2], 1, 1, 1],
      [[1, 3], 2, 2, 3],
    ]);
  });

  it("ends a search inside a run where the rest of it is not wanted", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    expect(served.index.search(HERE, wanting(2, 1))).toEqual({ labels: [1, 2], tokens: 2, searchPath: [0] });
    expect(served.index.search(HERE, wanting(2, 3))).toEqual({ labels: [], tokens: 0, searchPath: [] });
  });

  it("names as search path the node that holds the match, which insert and evict find too", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(7));
    served.serve(HERE, labels(1, 2, 3));
    served.serve(HERE, labels(1, 2, 4));
    const { searchPath } = served.index.search(HERE, wanting(1, 2, 4));
    expect(searchPath).toEqual([1, 1]);
    expect(served.index.entries(10).find((entry) => entry.searchPath.join() === "1,1")?.labels).toEqual([1, 2, 4]);
  });

  it("never gives a child position twice, so a search path keeps meaning the same node", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1));
    served.serve(HERE, labels(2));
    served.evict(1);
    served.serve(HERE, labels(3));
    expect(shapeOf(served.index)).toEqual([
      [[], []],
      [[1], [2]],
      [[2], [3]],
    ]);
  });

  it("knows whether a sequence was served, from its first block on", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    served.serve(HERE, labels(1, 2, 4, 5));
    for (const held of [[], [1], [1, 2], [1, 2, 3], [1, 2, 4], [1, 2, 4, 5]]) {
      expect(isHeld(served.index, HERE, labels(...held))).toBe(true);
      expect(isHeld(served.index, ELSEWHERE, labels(...held))).toBe(false);
    }
    for (const other of [[2], [2, 3], [1, 3], [1, 2, 5], [1, 2, 3, 4], [1, 2, 3, 4, 5]]) {
      expect(isHeld(served.index, HERE, labels(...other))).toBe(false);
    }
  });

  it("keeps anchors apart", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2));
    expect(served.index.hasAnchor(ELSEWHERE)).toBe(false);
    expect(served.index.search(ELSEWHERE, wanting(1, 2)).tokens).toBe(0);
    served.serve(ELSEWHERE, labels(2, 1));
    expect(served.index.search(HERE, wanting(1, 2)).labels).toEqual([1, 2]);
    expect(served.index.search(ELSEWHERE, wanting(1, 2)).labels).toEqual([2, 1]);
  });

  it("takes an empty first sequence, and extends it", () => {
    const served = new ServedSequences();
    served.serve(HERE, []);
    expect(served.index.hasAnchor(HERE)).toBe(true);
    served.serve(HERE, labels(1));
    served.index.check();
    expect(served.index.search(HERE, wanting(1)).labels).toEqual([1]);
    served.evict(1);
    expect(served.index.hasAnchor(HERE)).toBe(true);
    served.evict(0);
    expect(served.index.size).toBe(0);
  });

  it("takes a sequence that is the intersection of others, and removes it again", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    served.serve(HERE, labels(1, 2, 4));
    const intersection = served.serve(HERE, labels(1, 2));
    served.index.check();
    expect(served.index.size).toBe(4);
    const node = served.index.entries(10).find(({ labels: held }) => held.length === 2);
    expect(node?.live).toBe(1);
    expect(served.index.evict(intersection)).toBe(true);
    served.index.check();
    expect(served.index.search(HERE, wanting(1, 2, 4)).labels).toEqual([1, 2, 4]);
  });
});

describe("context index, eviction", () => {
  it("takes a request's own blocks and keeps what others share", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    served.serve(HERE, labels(1, 2, 4));
    served.evict(0);
    expect(served.index.search(HERE, wanting(1, 2, 4)).labels).toEqual([1, 2]);
    expect(served.index.search(HERE, wanting(1, 2, 3)).labels).toEqual([1, 2, 3]);
  });

  it("prunes unary chains: a node that has become a mere step is joined with its only child", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(1, 2, 3));
    const before = shapeOf(served.index);
    for (const n of [4, 5, 6]) served.serve(HERE, labels(1, 2, n));
    served.serve(HERE, labels(1, 7));
    expect(served.index.size).toBe(8);
    for (let age = 0; age < 4; age++) served.evict(0);
    served.index.check();
    expect(shapeOf(served.index)).toEqual(before);
  });

  it("keeps a node as long as one of its requests lives", () => {
    const served = new ServedSequences();
    const node = served.serve(HERE, labels(1));
    expect(served.serve(HERE, labels(1))).toBe(node);
    expect(served.index.evict(node)).toBe(true);
    expect(served.index.search(HERE, wanting(1)).labels).toEqual([1]);
    expect(served.index.evict(node)).toBe(true);
    expect(served.index.search(HERE, wanting(1)).labels).toEqual([]);
  });

  it("says so where there was nothing to evict", () => {
    const served = new ServedSequences();
    const node = served.serve(HERE, labels(1));
    expect(served.index.evict(node)).toBe(true);
    expect(served.index.evict(node)).toBe(false);
    expect(served.index.evict(999 as NodeId)).toBe(false);
  });

  it("finds a request's node also after it was split off or joined", () => {
    const served = new ServedSequences();
    const node = served.serve(HERE, labels(1, 2, 3));
    served.serve(HERE, labels(1, 4));
    served.evict(0);
    expect(served.index.evict(node)).toBe(true);
    expect(served.index.size).toBe(0);
  });

  it("leaves an empty index when everything is evicted, which works like a new one", () => {
    const life = fc.property(anyEvents, (events) => {
      const served = ServedSequences.after(events);
      while (served.held.length > 0) served.evict(served.held.length % 3);
      expect(served.index.size).toBe(0);
      expect(served.index.entries(10)).toEqual([]);
      expect(served.index.hasAnchor(HERE)).toBe(false);
      served.serve(HERE, labels(2, 1));
      served.index.check();
      expect(served.index.search(HERE, wanting(1, 2))).toEqual({ labels: [2, 1], tokens: 2, searchPath: [0] });
    });
    fc.assert(life);
  });

  it("keeps the tree's rules and every sequence that is still held, whatever happens in whatever order", () => {
    const life = fc.property(anyEvents, (events) => {
      const served = new ServedSequences();
      for (const event of events) {
        served.apply(event);
        served.index.check();
        for (const { anchor, labels: held } of served.held) {
          expect(served.index.search(anchor, wanting(...held)).labels).toHaveLength(held.length);
        }
        for (const entry of served.index.entries(1_000)) {
          expect(served.holds(HERE, entry.labels) || served.holds(ELSEWHERE, entry.labels)).toBe(true);
        }
      }
      expect(served.index.entries(1_000).reduce((sum, { live }) => sum + live, 0)).toBe(served.held.length);
    });
    fc.assert(life);
  });
});
