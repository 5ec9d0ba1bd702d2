import type { Label } from "../text/ids.js";
import { append, groupBy, smallest } from "../text/lists.js";
import type { BatchOrder, NumberedBatch } from "./batch-request.js";
import type { CachedPrefixes } from "./cached-prefixes.js";
import type { StartedTree } from "./cached-starts.js";
import { comparePaths, type RequestAlone } from "./one-by-one.js";
import { nodesOf, type PrefixNode } from "./prefix-tree.js";

/** A request's place within its branch. */
interface BranchRequest {
  readonly request: number;
  readonly order: readonly number[];
  /** See `PlannedRequest.shared`. */
  readonly shared: number;
  /** Child positions behind the branch's own; empty: the branch is this request's. */
  readonly path: readonly number[];
}

/** Requests that begin alike, and no other: executed back to back, depth first. */
export interface PlannedBranch {
  readonly requests: readonly BranchRequest[];
  /** Of all its requests. */
  readonly earliest: number;
  /** Number of its key, in the order of the keys' earliest requests. */
  readonly key: number;
  /** Child positions of the cached prefix that it begins with, see `CachedPrefix`; null for none. */
  readonly cachedPath: readonly number[] | null;
}

/** What all trees of one key have in common. */
interface KeyTrees {
  /** By request. */
  readonly sets: readonly (readonly number[])[];
  /** By the earliest of several requests with the same blocks: all of them. */
  readonly requestsAs: ReadonlyMap<number, readonly number[]>;
  readonly cached: CachedPrefixes;
  readonly key: number;
}

/**
 * Puts branches in execution order. What was cached before the batch is used first, least recently used first, because it is what a full
 * cache evicts next; all other branches follow in the order of their earliest requests.
 */
export function executed({ sets, labels }: NumberedBatch, branches: readonly PlannedBranch[]): BatchOrder {
  const orders: (readonly Label[])[] = sets.map(() => []);
  const shared = sets.map(() => 0);
  const searchPaths: (readonly number[])[] = sets.map(() => []);
  const sequence: number[] = [];
  for (const [position, { requests }] of branches.toSorted(compareBranches).entries()) {
    for (const { request, order, shared: leading, path } of requests) {
      orders[request] = order.map((block) => labels[block] as Label);
      shared[request] = leading;
      // Requests without blocks share nothing.
      if (order.length > 0) searchPaths[request] = [position, ...path];
      sequence.push(request);
    }
  }
  return { orders, shared, searchPaths, sequence };
}

function compareBranches(a: PlannedBranch, b: PlannedBranch): number {
  if (a.cachedPath === null || b.cachedPath === null) {
    return Number(a.cachedPath === null) - Number(b.cachedPath === null) || a.earliest - b.earliest;
  }
  return a.key - b.key || comparePaths(a.cachedPath, b.cachedPath) || a.earliest - b.earliest;
}

/** The branches of requests that were ordered one by one; every place in their orders counts. */
export function singleBranches(alone: readonly RequestAlone[], key: number): PlannedBranch[] {
  return [...groupBy(alone, ({ path }) => path[0]).values()].map((requests) => ({
    requests: requests.map(({ request, order, path }) => ({
      request,
      order,
      shared: order.length,
      path: path.slice(1),
    })),
    earliest: smallest(requests.map(({ request }) => request)),
    key,
    cachedPath: requests[0]?.isCached === true ? requests[0].path : null,
  }));
}

/** The branches of a tree: itself, or its parts without blocks in common. */
export function branchesOf({ root, start }: StartedTree, trees: KeyTrees): PlannedBranch[] {
  const earliest = earliestRequests(root);
  return withoutEmpty(root).map((top) => ({
    requests: top.children === null ? requestsAlone(top, trees) : requestsBelow(top, start.blocks, earliest, trees),
    earliest: earliest.get(top) ?? 0,
    key: trees.key,
    cachedPath: start.blocks.length === 0 ? null : start.path,
  }));
}

/** The requests of a tree with a single set of blocks: each may be ordered by itself, and the later ones find the first one's order. */
function requestsAlone({ request }: PrefixNode, { sets, requestsAs, cached }: KeyTrees): BranchRequest[] {
  const order = cached.orderAlone(sets[request ?? 0] ?? []);
  return (requestsAs.get(request ?? 0) ?? []).map((each) => ({ request: each, order, shared: 0, path: [] }));
}

interface PlacedNode {
  readonly node: PrefixNode;
  /** Blocks of the node's ancestors, in prompt order. */
  readonly before: readonly number[];
  readonly path: readonly number[];
}

/** The requests of a tree that begins with `start`, depth first. */
function requestsBelow(
  top: PrefixNode,
  start: readonly number[],
  earliest: ReadonlyMap<PrefixNode, number>,
  { sets, requestsAs, cached }: KeyTrees,
): BranchRequest[] {
  const requests: BranchRequest[] = [];
  const earlier = (a: PrefixNode, b: PrefixNode) => (earliest.get(a) ?? 0) - (earliest.get(b) ?? 0);
  const pending: PlacedNode[] = [{ node: top, before: start, path: [] }];
  for (let step = pending.pop(); step !== undefined; step = pending.pop()) {
    const { node, before, path } = step;
    // Among blocks common to the same requests, the most relevant to the earliest request comes first.
    const inNode = new Set(node.blocks);
    for (const block of before) inNode.delete(block);
    const relevance = sets[earliest.get(node) ?? 0] ?? [];
    const own = relevance.filter((block) => inNode.has(block));
    const order = [...before, ...(node.request === null ? cached.orderShared(before, own, relevance) : own)];
    if (node.request === null) {
      append(pending, placed(alikeExpanded(node).sort(earlier), order, path));
      continue;
    }
    const alike = requestsAs.get(node.request) ?? [];
    const shared = alike.length > 1 ? order.length : before.length;
    for (const request of alike) requests.push({ request, order, shared, path });
  }
  return requests;
}

/** Last child first, for a stack. */
function placed(children: readonly PrefixNode[], before: readonly number[], path: readonly number[]): PlacedNode[] {
  return children.map((node, position) => ({ node, before, path: [...path, position] })).reverse();
}

/** The earliest request below each node. */
function earliestRequests(root: PrefixNode): Map<PrefixNode, number> {
  const earliest = new Map<PrefixNode, number>();
  for (const node of [...nodesOf(root)].reverse()) {
    const below = node.children?.map((child) => earliest.get(child) ?? 0);
    earliest.set(node, node.request ?? smallest(below ?? []));
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
