import { describe, expect, it } from "vitest";
import { paperAnnotations } from "../../../src/core/conversation/injecting.js";
import { alignTo } from "../../../src/core/ordering/ordering.js";
import { AccessWindow } from "../../../src/core/published/access-frequency.js";
import { ClusterTree, contextDistance } from "../../../src/core/published/cluster-tree.js";
import { clusterContexts, schedule } from "../../../src/core/published/clustering.js";
import type { Label, TurnId } from "../../../src/core/text/ids.js";
import { labels } from "../cache/served-sequences.js";
import { Chat, memories, UserScope } from "../compose/scope-fixture.js";
import { conformanceCases, SKIPPED } from "../conformance-cases.js";
import { entriesOf, prefixesOf, ticket } from "./clustered-contexts.js";

type Blocks = readonly number[];

/** `paper-examples.json`: what the papers print, blocks as numbers. */
interface PaperExamples {
  readonly distance: {
    readonly alpha: number;
    readonly contexts: Readonly<Record<string, Blocks>>;
    readonly pairs: readonly { readonly pair: readonly [string, string]; readonly d: number }[];
  };
  readonly build: {
    readonly contexts: Readonly<Record<string, Blocks>>;
    readonly firstMerge: readonly string[];
    readonly nodes: readonly { readonly name: string; readonly blocks: Blocks; readonly children: readonly string[] }[];
    readonly reordered: Readonly<Record<string, Blocks>>;
  };
  readonly search: {
    readonly context: Blocks;
    readonly descends: readonly string[];
    readonly path: Blocks;
    readonly insertedAs: { readonly parent: string; readonly position: number; readonly path: Blocks };
  };
  readonly order: {
    readonly requests: readonly {
      readonly name: string;
      readonly context: Blocks;
      readonly ordered: Blocks;
      readonly orderAnnotation: Blocks | null;
    }[];
  };
  readonly schedule: { readonly arrival: readonly string[]; readonly executed: readonly string[] };
  readonly scheduleByPathLength: readonly { readonly pathLengths: Blocks; readonly executed: Blocks }[];
  readonly deduplicate: {
    readonly turns: readonly { readonly context: Blocks; readonly sent: Blocks; readonly references: Blocks }[];
  };
  readonly accessFrequency: {
    readonly requests: readonly { readonly context: Blocks; readonly prefixTreeAfter: readonly Blocks[] }[];
    readonly reorder: {
      readonly counts: Readonly<Record<string, number>>;
      readonly context: Blocks;
      readonly ordered: Blocks;
    };
  };
}

const known = conformanceCases("paper-examples.json");
const examples = known as PaperExamples;

describe.skipIf(known === null)(`the papers' worked examples${known === null ? SKIPPED : ""}`, () => {
  /** The tree that Alg. 4 builds of the printed contexts, and which ticket stands for which name. */
  function built(): {
    tree: ClusterTree;
    ticketOf: (name: string) => TurnId;
    blocksOf: (name: string) => readonly Label[];
  } {
    const names = Object.keys(examples.build.contexts);
    const ticketOf = (name: string) => ticket(Number(name.slice(1)));
    const contexts = Object.entries(examples.build.contexts).map(([name, blocks]) => ({
      ticket: ticketOf(name),
      blocks: labels(...blocks),
    }));
    const { nodes, nextId } = clusterContexts(contexts, 1, 0);
    const tree = new ClusterTree(nodes, nextId, 100);
    tree.check();
    const blocksOf = (name: string) => {
      if (names.includes(name)) return blocksAt(tree, tree.pathOf(ticketOf(name)) ?? []);
      return labels(...(examples.build.nodes.find((node) => node.name === name)?.blocks ?? []));
    };
    return { tree, ticketOf, blocksOf };
  }

  function blocksAt(tree: ClusterTree, path: Blocks): readonly Label[] {
    return entriesOf(tree).find(({ searchPath }) => searchPath.join() === path.join())?.blocks ?? [];
  }

  /** The printed path of a node: where its leaves' paths agree. */
  function pathOf(tree: ClusterTree, ticketOf: (name: string) => TurnId, name: string): Blocks {
    const node = examples.build.nodes.find((other) => other.name === name);
    if (node === undefined) return tree.pathOf(ticketOf(name)) ?? [];
    const paths = node.children.map((child) => pathOf(tree, ticketOf, child));
    const [first = []] = paths;
    const agreed = first.findIndex((position, at) => paths.some((path) => path[at] !== position));
    return agreed < 0 ? first : first.slice(0, agreed);
  }

  it("gives the printed distances (eq. 1), of which B–D is the smallest that overlap alone leaves tied", () => {
    const { alpha, contexts, pairs } = examples.distance;
    const blocksOf = (name: string) => labels(...(contexts[name] ?? []));
    expect(pairs.length).toBeGreaterThan(0);
    for (const { pair, d } of pairs) {
      const [a, b] = [blocksOf(pair[0]), blocksOf(pair[1])];
      expect(contextDistance(a, b, alpha), pair.join("–")).toBeCloseTo(d, 12);
      expect(contextDistance(b, a, alpha), pair.join("–")).toBeCloseTo(d, 12);
    }
  });

  it("builds the printed tree (Alg. 4)", () => {
    const { tree, ticketOf } = built();
    const { nodes, firstMerge, reordered, contexts } = examples.build;
    expect(tree.size).toBe(1 + nodes.length + Object.keys(contexts).length);
    for (const { name, blocks, children } of nodes) {
      const path = pathOf(tree, ticketOf, name);
      expect(blocksAt(tree, path), name).toEqual(blocks);
      const childPaths = children.map((child) => pathOf(tree, ticketOf, child));
      expect(childPaths, name).toEqual(children.map((_, position) => [...path, position]));
    }
    for (const [name, blocks] of Object.entries(reordered)) {
      expect(blocksAt(tree, tree.pathOf(ticketOf(name)) ?? []), name).toEqual(blocks);
    }
    const merges = entriesOf(tree).filter(({ distance }) => distance > 0);
    const [nearest] = merges.sort((a, b) => a.distance - b.distance);
    const firstPaths = firstMerge.map((name) => tree.pathOf(ticketOf(name))?.slice(0, -1));
    expect(firstPaths).toEqual(firstMerge.map(() => nearest?.searchPath));
  });

  it("descends as printed (Alg. 1), and inserts where printed", () => {
    const { tree, ticketOf, blocksOf } = built();
    const { context, path, descends, insertedAs } = examples.search;
    const match = tree.search(labels(...context));
    expect(match.searchPath).toEqual(path);
    expect(descends.map((name) => pathOf(tree, ticketOf, name))).toEqual(path.map((_, at) => path.slice(0, at + 1)));
    expect(match.blocks).toEqual(blocksOf(descends.at(-1) ?? ""));
    tree.insert(labels(...context), ticket(6), 1);
    tree.check();
    expect(tree.pathOf(ticket(6))).toEqual(insertedAs.path);
    expect(insertedAs.path).toEqual([...pathOf(tree, ticketOf, insertedAs.parent), insertedAs.position]);
  });

  it("orders the printed requests (Alg. 2), and annotates those that moved", () => {
    for (const { name, context, ordered, orderAnnotation: annotated } of examples.order.requests) {
      const { tree } = built();
      const retrieved = labels(...context);
      const placed = alignTo(tree.search(retrieved).blocks, retrieved);
      expect(placed, name).toEqual(ordered);
      const annotations = paperAnnotations(retrieved, new Set(), placed);
      expect(
        annotations.map((annotation) => ("labels" in annotation ? annotation.labels : null)),
        name,
      ).toEqual(annotated === null ? [] : [annotated]);
    }
  });

  it("orders them the same one after the other, each taken in after it was ordered", () => {
    const { tree, ticketOf } = built();
    for (const [at, { name, context, ordered }] of examples.order.requests.entries()) {
      const retrieved = labels(...context);
      expect(alignTo(tree.search(retrieved).blocks, retrieved), name).toEqual(ordered);
      tree.insert(retrieved, ticketOf(name), at + 1);
      expect(blocksAt(tree, tree.pathOf(ticketOf(name)) ?? []), name).toEqual(ordered);
    }
  });

  it("schedules them as printed (Alg. 5)", () => {
    const { tree, ticketOf } = built();
    for (const [at, { name, context }] of examples.order.requests.entries()) {
      tree.insert(labels(...context), ticketOf(name), at + 1);
    }
    const { arrival, executed } = examples.schedule;
    const order = schedule(arrival.map((name) => tree.pathOf(ticketOf(name)) ?? []));
    expect(order.map((input) => arrival[input])).toEqual(executed);
  });

  it("schedules longer paths of one group first", () => {
    expect(examples.scheduleByPathLength.length).toBeGreaterThan(0);
    for (const { pathLengths, executed } of examples.scheduleByPathLength) {
      expect(schedule(pathLengths.map((length) => new Array<number>(length).fill(0)))).toEqual(executed);
    }
  });

  it("sends in a conversation what is new, and refers to the rest (Alg. 3)", () => {
    const chat = new Chat(new UserScope());
    for (const { context, sent, references } of examples.deduplicate.turns) {
      const { turn, memories: placed } = chat.ask("?", memories(...context.map(String)), {
        annotations: "paper",
      });
      chat.answer("!");
      const blockOf = new Map(placed.map(({ label, memoryId }) => [label, Number(memoryId)]));
      expect(turn.injection.blocks.map(({ label }) => blockOf.get(label))).toEqual(sent);
      const referred = turn.injection.annotations.flatMap((each) => (each.kind === "location" ? each.labels : []));
      expect(referred.map((label) => blockOf.get(label))).toEqual(references);
    }
  });

  it("promotes what was accessed twice (CRAFT)", () => {
    const window = new AccessWindow([{ turn: ticket(1), labels: labels(1, 2), promoted: 0 }]);
    expect(prefixesOf(window)).toEqual([]);
    for (const [at, { context, prefixTreeAfter }] of examples.accessFrequency.requests.entries()) {
      window.take(window.alongPrefixes(labels(...context)), ticket(at + 2));
      expect(prefixesOf(window), JSON.stringify(context)).toEqual(prefixTreeAfter);
    }
  });

  it("puts first what was accessed most often (CRAFT)", () => {
    const { counts, context, ordered } = examples.accessFrequency.reorder;
    const rows = Object.entries(counts).flatMap(([block, count]) =>
      Array.from({ length: count }, () => labels(Number(block))),
    );
    const window = new AccessWindow(rows.map((row, at) => ({ turn: ticket(at + 1), labels: row, promoted: 0 })));
    expect(window.byFrequency(labels(...context))).toEqual(ordered);
  });
});
