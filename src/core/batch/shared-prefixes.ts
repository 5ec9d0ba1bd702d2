import { blocksKey } from "../ordering/alignment.js";
import type { Label } from "../text/ids.js";
import { append, groupBy, smallest } from "../text/lists.js";
import type { BatchOrder, NumberedBatch } from "./batch-request.js";
import { contextComponents } from "./context-components.js";
import { contextParts } from "./context-parts.js";
import { nodesOf, type PrefixNode, requestNode } from "./prefix-tree.js";
import { joinAll } from "./prefix-tree-building.js";
import { refined } from "./prefix-tree-refining.js";

/** Maximum connected requests that are planned in one piece; larger sets are split into parts, which are joined afterwards. */
const PART_REQUESTS = 2_000;

/**
 * Plans the blocks' orders and the requests' order together, so that serving them prefills as few tokens as possible; memstem's own. Builds
 * a tree in which every prompt is a path: the blocks common to all prompts below a node come before all others. Greedily joins the two
 * nodes that share most, then moves requests and branches to where they save more. Execution is depth first: a prefix is computed once,
 * reused by all its requests back to back, and may be evicted after the last of them, so a cache with room for a few prompts does as well
 * as an unlimited one. Finding the optimal tree is hard (as for the order of columns and rows, Liu et al. 2024); the distance to it is
 * unknown.
 *
 * Deterministic. A few seconds for 10,000 requests of 100 blocks; memory is linear in the blocks of all requests.
 */
export function sharedPrefixes({ sets, tokensOf, labels }: NumberedBatch): BatchOrder {
  // Requests with the same blocks are one node, represented by the earliest.
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
    // Among blocks common to the same requests, the most relevant to the earliest request comes first.
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
      // Requests without blocks share nothing.
      if (named.length > 0) searchPaths[request] = path;
      sequence.push(request);
    }
  }
  return { orders, searchPaths, sequence };
}

interface PlacedNode {
  readonly node: PrefixNode;
  /** Blocks of the node's ancestors, in prompt order. */
  readonly before: readonly number[];
  readonly path: readonly number[];
}

/** Last child first, for a stack. */
function placed(children: readonly PrefixNode[], before: readonly number[], path: readonly number[]): PlacedNode[] {
  return children.map((node, position) => ({ node, before, path: [...path, position] })).reverse();
}

/** The earliest request below each node. */
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

/** A node's children; a child with the same blocks as the node is replaced by its own children. */
function alikeExpanded(node: PrefixNode): PrefixNode[] {
  const children: PrefixNode[] = [];
  const pending = [...(node.children ?? [])];
  for (let child = pending.pop(); child !== undefined; child = pending.pop()) {
    if (child.children !== null && child.blocks.length === node.blocks.length) append(pending, child.children);
    else children.push(child);
  }
  return children;
}

/** The node; if it has no blocks, its nearest descendants that do, and requests without blocks. */
function withoutEmpty(node: PrefixNode): PrefixNode[] {
  return node.children !== null && node.blocks.length === 0 ? alikeExpanded(node) : [node];
}
