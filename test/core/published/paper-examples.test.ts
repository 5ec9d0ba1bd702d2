import { describe, expect, it } from "vitest";
import { paperAnnotations } from "../../../src/core/conversation/injecting.js";
import { alignTo } from "../../../src/core/ordering/ordering.js";
import { AccessWindow } from "../../../src/core/published/access-frequency.js";
import { ClusterTree, contextDistance } from "../../../src/core/published/cluster-tree.js";
import { clusterContexts, schedule } from "../../../src/core/published/clustering.js";
import { labels } from "../cache/served-sequences.js";
import { Chat, memories, UserScope } from "../compose/scope-fixture.js";
import { entriesOf, prefixesOf, ticket } from "./clustered-contexts.js";

/* The examples that the papers print, blocks by their printed numbers. Over HTTP: test/http/routes/paper-figures.test.ts. */

/** ContextPilot's figures 5 to 7. */
const [C1, C2, C3] = [labels(2, 1, 3), labels(2, 6, 1), labels(4, 1, 0)];
const [C6, C7, C8] = [labels(2, 1, 4), labels(5, 7, 8), labels(1, 2, 9)];

/** The tree of figure 5, by Alg. 4. */
function built(): ClusterTree {
  const tree = new ClusterTree(clusterContexts([C1, C2, C3]), 100);
  tree.check();
  return tree;
}

const shapeOf = (tree: ClusterTree) =>
  entriesOf(tree).map(({ searchPath, blocks }) => [searchPath.join("."), blocks.join()]);

describe("ContextPilot's printed examples", () => {
  it("4.1: B and D are nearest by eq. 1, where overlap alone is tied", () => {
    const [a, b, c, d] = [labels(3, 5, 1, 7), labels(2, 6, 3, 5), labels(3, 5, 8, 9), labels(2, 6, 4, 0)];
    for (const [one, other, distance] of [
      [a, b, 0.502],
      [b, c, 0.502],
      [b, d, 0.5],
      [a, d, 1],
      [c, d, 1],
    ] as const) {
      expect(contextDistance(one, other)).toBeCloseTo(distance, 12);
      expect(contextDistance(other, one)).toBeCloseTo(distance, 12);
    }
  });

  it("figure 5: C4 {1, 2} over C1 and C2, C5 {1} over C4 and C3 (Alg. 4)", () => {
    const tree = built();
    expect(shapeOf(tree).map(([path, blocks]) => [path, [...(blocks ?? "").split(",")].sort().join()])).toEqual([
      ["0", "1"],
      ["0.0", "1,2"],
      ["0.0.0", "1,2,3"],
      ["0.0.1", "1,2,6"],
      ["0.1", "0,1,4"],
    ]);
    const merged = entriesOf(tree).filter(({ isLeaf }) => !isLeaf);
    expect(merged.sort((a, b) => a.distance - b.distance).map(({ searchPath }) => searchPath)).toEqual([[0, 0], [0]]);
  });

  it("4.2: C6 stops at C4, path 0.0, and joins it at 0.0.2 (Alg. 1)", () => {
    const tree = built();
    const { blocks, searchPath } = tree.search(C6);
    expect([searchPath, [...blocks].sort()]).toEqual([
      [0, 0],
      [1, 2],
    ]);
    tree.insert(C6, 1);
    tree.check();
    expect(tree.leafOf(C6)?.searchPath).toEqual([0, 0, 2]);
  });

  it("figure 6: the contexts in the orders as printed (Alg. 2), one after the other", () => {
    const tree = built();
    for (const [context, order] of [
      [C1, [1, 2, 3]],
      [C2, [1, 2, 6]],
      [C3, [1, 4, 0]],
    ] as const)
      expect(tree.leafOf(context)?.blocks).toEqual(order);
    for (const [at, [context, order]] of [
      [C6, [1, 2, 4]] as const,
      [C7, [5, 7, 8]] as const,
      [C8, [1, 2, 9]] as const,
    ].entries()) {
      expect(alignTo(tree.search(context).blocks, context)).toEqual(order);
      tree.insert(context, at + 1);
      expect(tree.leafOf(context)?.blocks).toEqual(order);
    }
  });

  it("figure 7: C6, C3, C7, C8 run as C6, C8, C3, C7 (Alg. 5)", () => {
    const tree = built();
    for (const context of [C6, C7, C8]) tree.insert(context, 1);
    expect(schedule([C6, C3, C7, C8].map((context) => tree.leafOf(context)?.searchPath ?? []))).toEqual([0, 3, 1, 2]);
  });

  it("5.2: of one group, longer paths run first", () => {
    expect(schedule([2, 4, 3].map((length) => new Array<number>(length).fill(0)))).toEqual([1, 2, 0]);
  });

  it("5.3: the ranking of a context whose blocks moved, and of no other", () => {
    const rankings = [C6, C7].map((context) => paperAnnotations(context, new Set(), alignTo(labels(1, 2), context)));
    expect(rankings).toMatchObject([[{ kind: "order", labels: C6 }], []]);
  });

  it("6: C6's second turn {1, 5, 2} has 5 alone, and refers to 1 and 2 (Alg. 3)", () => {
    const chat = new Chat(new UserScope());
    for (const [context, sent, references] of [
      [[1, 2, 4], [1, 2, 4], []],
      [[1, 5, 2], [5], [1, 2]],
    ] as const) {
      const { turn, memories: placed } = chat.ask("?", memories(...context.map(String)), { annotations: "paper" });
      chat.answer("!");
      const blockOf = new Map(placed.map(({ label, memoryId }) => [label, Number(memoryId)]));
      expect(turn.injection.blocks.map(({ label }) => blockOf.get(label))).toEqual(sent);
      const referred = turn.injection.annotations.flatMap((each) => (each.kind === "location" ? each.labels : []));
      expect(referred.map((label) => blockOf.get(label))).toEqual(references);
    }
  });
});

describe("CRAFT's printed examples", () => {
  it("4.2: {1, 2, 5} promotes 1 and 2; 6 is promoted when it comes again", () => {
    const window = new AccessWindow([{ turn: ticket(1), labels: labels(1, 2), promoted: 0 }]);
    expect(prefixesOf(window)).toEqual([]);
    for (const [at, [context, promoted]] of [
      [
        [1, 2, 5],
        [1, 2],
      ] as const,
      [
        [1, 2, 6],
        [1, 2],
      ] as const,
      [
        [1, 2, 6],
        [1, 2, 6],
      ] as const,
    ].entries()) {
      window.take(window.alongPrefixes(labels(...context)), ticket(at + 2));
      expect(prefixesOf(window)).toEqual([promoted]);
    }
  });

  it("4.2: what was accessed more often goes first: {1, 2, 3} with 2 and 3 hot is 2, 3, 1", () => {
    const served = [...Array.from({ length: 9 }, () => labels(2, 3)), labels(1, 4)];
    const window = new AccessWindow(served.map((row, at) => ({ turn: ticket(at + 1), labels: row, promoted: 0 })));
    expect(window.byFrequency(labels(1, 2, 3))).toEqual([2, 3, 1]);
  });
});
