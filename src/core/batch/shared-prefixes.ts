import { blocksKey } from "../ordering/alignment.js";
import type { Label } from "../text/ids.js";
import { append, groupBy, smallest } from "../text/lists.js";
import type { BatchOrder, NumberedBatch } from "./batch-request.js";
import { contextComponents } from "./context-components.js";
import { contextParts } from "./context-parts.js";
import { nodesOf, type PrefixNode, requestNode } from "./prefix-tree.js";
import { joinAll } from "./prefix-tree-building.js";
import { refined } from "./prefix-tree-refining.js";

/** Of requests that hang together so many are looked at in one piece; larger sets fall into parts, which are joined afterwards. */
const PART_REQUESTS = 2_000;

/**
 * Ours: orders the blocks of all requests and the requests together, so that serving them prefills the fewest tokens. Builds a tree in
 * which every prompt is a path: what all prompts below a node have in common stands before everything else in them. It joins the two
 * that share most, again and again, then moves requests and branches to where they save more. The tree is executed depth first: a
 * prefix is computed once, used by all that begin with it one behind the other, and may be evicted after the last of them, so a cache
 * with room for a few prompts does as well as an endless one. The best tree is hard to find (as the best order of columns and rows is,
 * Liu et al. 2024); how far from it this one is, is not known.
 *
 * Deterministic. A few seconds for 10,000 requests of 100 blocks; memory grows with the blocks of all requests.
 */
export function sharedPrefixes({ sets, tokensOf, labels }: NumberedBatch): BatchOrder {
  // Requests for the same blocks are one node, which the earliest stands for.
  const alike = [...groupBy(sets.keys(), (request) => blocksKey(sets[request] ?? [])).values()];
  const earliestAlike = alike.map(([request = 0]) => request);
  const distinct = earliestAlike.map((request) => sets[request] ?? []);
  const scratch = new Uint8Array(tokensOf.length);
  const trees = contextComponents(distinct).map((component) => {
    const parts = component.length > PART_REQUESTS ? contextParts(distinct, component, PART_REQUESTS) : [component];
    const roots = parts.map((part) => {
      const requests = part.map((at) => requestNode(earliestAlike[at] ?? 0, distinct[at] ?? [], tokensOf));
      return refined(joinAll(requests, tokensOf), tokensOf, scratch);
    });
    return joinAll(roots, tokensOf);
  });
  const requestsAs = new Map(alike.map((requests) => [requests[0] ?? 0, requests]));
  const orders: (readonly Label[])[] = sets.map(() => []);
  const searchPaths: (readonly number[])[] = sets.map(() => []);
  const sequence: number[] = [];
  const earliest = earliestRequests(trees);
  const earlier = (a: PrefixNode, b: PrefixNode) => (earliest.get(a) ?? 0) - (earliest.get(b) ?? 0);
  const pending = placed(trees.flatMap(withoutEmpty).sort(earlier), [], []);
  for (let step = pending.pop(); step !== undefined; step = pending.pop()) {
    const { node, before, path } = step;
    // What stands first among those that are alike throughout: the most relevant to the earliest of them.
    const inNode = new Set(node.blocks);
    for (const block of before) inNode.delete(block);
    const relevance = sets[earliest.get(node) ?? 0] ?? [];
    const order = [...before, ...relevance.filter((block) => inNode.has(block))];
    if (node.request === null) {
      append(pending, placed(alikeExpanded(node).sort(earlier), order, path));
      continue;
    }
    const named = order.map((block) => labels[block] as Label);
    for (const request of requestsAs.get(node.request) ?? []) {
      orders[request] = named;
      // Without blocks there is nothing to be alike in.
      if (named.length > 0) searchPaths[request] = path;
      sequence.push(request);
    }
  }
  return { orders, searchPaths, sequence };
}

interface PlacedNode {
  readonly node: PrefixNode;
  /** Blocks of the nodes above, in prompt order. */
  readonly before: readonly number[];
  readonly path: readonly number[];
}

/** Last child first, as a stack wants them. */
function placed(children: readonly PrefixNode[], before: readonly number[], path: readonly number[]): PlacedNode[] {
  return children.map((node, position) => ({ node, before, path: [...path, position] })).reverse();
}

/** Of each node, the earliest request below it. */
function earliestRequests(trees: readonly PrefixNode[]): Map<PrefixNode, number> {
  const earliest = new Map<PrefixNode, number>();
  for (const tree of trees) {
    for (const node of [...nodesOf(tree)].reverse()) {
      const below = node.children?.map((child) => earliest.get(child) ?? 0);
      earliest.set(node, node.request ?? smallest(below ?? []));
    }
  }
  return earliest;
}

/** A node's children; in place of one that stands for the same blocks as the node, that one's. */
function alikeExpanded(node: PrefixNode): PrefixNode[] {
  const children: PrefixNode[] = [];
  const pending = [...(node.children ?? [])];
  for (let child = pending.pop(); child !== undefined; child = pending.pop()) {
    if (child.children !== null && child.blocks.length === node.blocks.length) append(pending, child.children);
    else children.push(child);
  }
  return children;
}

/** The node, or where it stands for no block, the nearest ones below it that do, and requests without blocks. */
function withoutEmpty(node: PrefixNode): PrefixNode[] {
  return node.children !== null && node.blocks.length === 0 ? alikeExpanded(node) : [node];
}
