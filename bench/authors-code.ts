/**
 * `npm run bench -- papers authors-code`: why the published algorithm reuses more than the authors' own code (version 0.5.0 from PyPI; `npm run bench --
 * peer-orders` records its orders). Its online index is followed here rule by rule; where it departs from the paper, one rule at a time is put
 * right. First the share of recorded orders that come out the same. Then, of 150 searches of each of six users, the share of blocks that an endless
 * cache held, ÷ that of the code's own rules. Takes `--data FOLDER` (`recorded-data.ts`), with the peer's orders.
 *
 * Floor: 1, the code's own rules.
 */
import { ClusterTree, contextDistance, type Label } from "../src/core/index.js";
import { alignTo, blocksKey, intersectionOf } from "../src/core/ordering/ordering.js";
import { RECORDED_CONVERSATIONS, readRecording } from "../test/eval/locomo/recorded-searches.js";
import { leadingHeld } from "./overlap-shares.js";
import { neededData } from "./recorded-data.js";
import { median } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const LIMIT = 150;

/** Which rules are the paper's. */
interface Rules {
  /** A leaf is split at what two contexts have in common, not at how far they begin alike. */
  readonly intersects: boolean;
  /** The search stops where all children are equally near. */
  readonly stopsAtTies: boolean;
  /** The search descends into the nearest child, also where its first block was not retrieved. */
  readonly descendsAnyway: boolean;
  /** Contexts of the same blocks share a leaf. */
  readonly sharesLeaves: boolean;
}
const THEIRS: Rules = { intersects: false, stopsAtTies: false, descendsAnyway: false, sharesLeaves: false };
const VARIANTS: readonly (readonly [name: string, rules: Rules])[] = [
  ["the code's rules", THEIRS],
  ["leaves are split at the intersection", { ...THEIRS, intersects: true }],
  ["the search stops where all children are equally near", { ...THEIRS, stopsAtTies: true }],
  ["it descends where the first block is missing", { ...THEIRS, descendsAnyway: true }],
  ["the same blocks share a leaf", { ...THEIRS, sharesLeaves: true }],
  ["all four", { intersects: true, stopsAtTies: true, descendsAnyway: true, sharesLeaves: true }],
];

interface Node {
  blocks: readonly Label[];
  parent: Node | null;
  readonly children: Node[];
}

class OnlineIndex {
  readonly #root: Node = { blocks: [], parent: null, children: [] };
  readonly #leaves = new Set<string>();

  constructor(private readonly rules: Rules) {}

  order(context: readonly Label[]): readonly Label[] {
    const match = this.#search(context);
    const order = alignTo(match?.node.blocks ?? [], context);
    const key = blocksKey(context);
    if (!this.rules.sharesLeaves || !this.#leaves.has(key)) this.#insert(match, order);
    this.#leaves.add(key);
    return order;
  }

  #search(context: readonly Label[]): { readonly node: Node; readonly isPrefix: boolean } | null {
    const wanted = new Set(context);
    for (let node = this.#root; ; ) {
      const near = node.children
        .filter(({ blocks }) => blocks.some((label) => wanted.has(label)))
        .map((child) => ({ child, distance: Math.fround(contextDistance(context, child.blocks)) }));
      const [first, ...others] = near;
      const isOfRoot = node === this.#root;
      if (first === undefined) return isOfRoot ? null : { node, isPrefix: true };
      const isTied =
        near.length === node.children.length && others.every(({ distance }) => distance === first.distance);
      if (this.rules.stopsAtTies && others.length > 0 && isTied) return isOfRoot ? null : { node, isPrefix: true };
      const { child } = others.reduce((best, one) => (one.distance < best.distance ? one : best), first);
      const isPrefix = this.rules.descendsAnyway || wanted.has(child.blocks[0] as Label);
      if (!isPrefix || child.children.length === 0) return { node: child, isPrefix };
      node = child;
    }
  }

  #insert(match: { readonly node: Node; readonly isPrefix: boolean } | null, blocks: readonly Label[]): void {
    const { node, isPrefix } = match ?? { node: this.#root, isPrefix: true };
    const add = (parent: Node) => parent.children.push({ blocks, parent, children: [] });
    const parent = node.parent ?? this.#root;
    if (!isPrefix) add(parent);
    else if (node.children.length > 0 || node === this.#root) add(node);
    else {
      const until = node.blocks.findIndex((label, at) => label !== blocks[at]);
      const alike = until < 0 ? node.blocks : node.blocks.slice(0, until);
      const common = this.rules.intersects ? intersectionOf(node.blocks, blocks) : alike;
      if (common.length === 0 || (common.length === node.blocks.length && common.length === blocks.length)) add(parent);
      else {
        const upper: Node = { blocks: common, parent, children: [] };
        parent.children[parent.children.indexOf(node)] = upper;
        node.parent = upper;
        upper.children.push(node);
        add(upper);
      }
    }
  }
}

const recordings = RECORDED_CONVERSATIONS.map((name) => readRecording(neededData(), name));
const searchesAt = (k: number) =>
  recordings.map(({ trace }) => trace.questions.map(({ retrieved }) => retrieved.slice(0, k) as unknown as Label[]));

function heldShare(orders: readonly (readonly Label[])[]): number {
  const hits = leadingHeld(orders.slice(0, LIMIT) as never);
  return hits.reduce((sum, held) => sum + held, 0) / orders.slice(0, LIMIT).flat().length;
}

const ordersBy = (rules: Rules, searches: readonly Label[][]) => {
  const index = new OnlineIndex(rules);
  return searches.map((context) => index.order(context));
};
const published = (searches: readonly Label[][]) => {
  const tree = new ClusterTree([], 1_000_000);
  return searches.map((context, at) => {
    const order = alignTo(tree.search(context).blocks, context);
    tree.insert(context, at);
    return order;
  });
};

const KS = [20, 100] as const;
printHead(["followed", ...KS.map((k) => `k = ${k}`)]);
printRow([
  "recorded orders that are the same",
  ...KS.map((k) => {
    const same = searchesAt(k).flatMap((searches, user) => {
      const recorded = recordings[user]?.peer.orders[`k${k}`] ?? [];
      return ordersBy(THEIRS, searches).map((order, at) => order.join() === recorded[at]?.join());
    });
    return `${same.filter(Boolean).length} of ${same.length}`;
  }),
]);
console.log("");
printHead(["hits ÷ the code's", ...KS.map((k) => `k = ${k}`)]);
for (const [name, ordered] of [
  ...VARIANTS.map(([variant, rules]) => [variant, (s: readonly Label[][]) => ordersBy(rules, s)] as const),
  ["memprefix's `context-pilot`", published] as const,
]) {
  const ratios = KS.map((k) =>
    median(searchesAt(k).map((searches) => heldShare(ordered(searches)) / heldShare(ordersBy(THEIRS, searches)))),
  );
  printRow([name, ...ratios.map((ratio) => ratio.toFixed(2))]);
}
