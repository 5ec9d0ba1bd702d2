import { ContextIndex } from "../cache/context-index.js";
import { followSequence } from "../cache/index-node.js";
import {
  blocksKey,
  orderForReuse,
  prefixExact,
  RecentRetrievals,
  type RetrievedBlock,
  type ScopeKnowledge,
} from "../ordering/ordering.js";
import { pathTo, searchPrefix } from "../ordering/prefix-search.js";
import { append, groupBy, smallest } from "../text/collections.js";
import type { Digest, Label, TurnId } from "../text/ids.js";
import type { BatchOrder, KeyGroup, NumberedBatch } from "./batch-plan.js";
import {
  contextComponents,
  contextParts,
  joinAll,
  joined,
  nodesOf,
  type PrefixNode,
  refined,
  requestNode,
  savedTokens,
  tokensIn,
} from "./prefix-tree.js";

interface CachedPrefix {
  readonly blocks: readonly number[];
  readonly tokens: number;
  /** Child positions in the tree of cached sequences, in which older sequences come first. */
  readonly path: readonly number[];
}

const NOTHING_CACHED: CachedPrefix = { blocks: [], tokens: 0, path: [] };

/** All sequences of one key share it. */
const ANCHOR = "" as Digest;

/** A context index of the plan's own, in a batch's block numbers. Nothing is evicted from it while the batch is executed. */
class CachedPrefixes {
  /** Built on the first lookup: nothing is known about most keys. */
  #known: ScopeKnowledge | null = null;
  #before = 0;
  #clock = 0;

  constructor(
    private readonly from: Pick<KeyGroup, "cached" | "recent">,
    private readonly tokensOf: Float64Array,
  ) {}

  get isEmpty(): boolean {
    return this.from.cached.length === 0;
  }

  /** The cached prefix with the most tokens whose every block is among `blocks`; none exceeds `limit` in tokens. */
  longest(blocks: readonly number[], limit: CachedPrefix | null = null): CachedPrefix {
    if (this.isEmpty || limit?.tokens === 0) return NOTHING_CACHED;
    const wanted = new Map(blocks.map((block) => [block as Label, this.tokensOf[block] as number]));
    if (limit?.blocks.every((block) => wanted.has(block as Label))) return limit;
    const { labels, tokens, searchPath } = searchPrefix(this.#built().index.root(ANCHOR), wanted);
    return { blocks: labels, tokens, path: searchPath };
  }

  /** The order of a request that shares nothing with the batch, by `prefix-exact`. */
  orderAlone(set: readonly number[]): readonly number[] {
    if (this.isEmpty && this.from.recent.length === 0 && this.#clock === 0) return set;
    return prefixExact.order({ anchor: ANCHOR, retrieved: this.#weighed(set), carrying: null }, this.#built()).labels;
  }

  /** Orders blocks after those in `front` for later batches, as `prefix-exact` does. */
  orderShared(front: readonly number[], blocks: readonly number[], asked: readonly number[]): readonly number[] {
    if (this.from.recent.length === 0) return blocks;
    const { recent } = this.#built();
    return orderForReuse(front as readonly Label[], this.#weighed(blocks), asked as readonly Label[], recent);
  }

  /** Serves a request as if it came by itself. Returns its order and the tokens that it hits. */
  serveAlone(set: readonly number[]): { readonly order: readonly number[]; readonly hit: number } {
    const order = this.orderAlone(set) as readonly Label[];
    const { index, recent } = this.#built();
    const held = index.heldBlocks(ANCHOR, order);
    index.insert(ANCHOR, order, ++this.#clock);
    recent.take(set as readonly Label[], this.#clock as TurnId);
    return { order, hit: tokensIn(order.slice(0, held), this.tokensOf) };
  }

  /** Child positions to the end of a served sequence. */
  pathOf(order: readonly number[]): readonly number[] {
    const { index } = this.#built();
    const { end } = followSequence(index.root(ANCHOR), order as readonly Label[]);
    return end === null ? [] : pathTo(end, 0).searchPath;
  }

  /** Whether the first block of a path was cached before anything was served. */
  isFromBefore([first]: readonly number[]): boolean {
    return first !== undefined && first < this.#before;
  }

  #weighed(blocks: readonly number[]): RetrievedBlock[] {
    return blocks.map((block) => ({ label: block as Label, tokens: this.tokensOf[block] as number }));
  }

  #built(): ScopeKnowledge {
    if (this.#known !== null) return this.#known;
    const { cached, recent } = this.from;
    const index = new ContextIndex([], 1, Number.POSITIVE_INFINITY);
    for (const sequence of cached) index.insert(ANCHOR, sequence as readonly Label[], ++this.#clock);
    this.#before = index.root(ANCHOR)?.children.size ?? 0;
    const rows = recent.map((set, at) => ({ turn: (at - recent.length) as TurnId, labels: set as readonly Label[] }));
    this.#known = { index, recent: new RecentRetrievals(rows) };
    return this.#known;
  }
}

/** Maximum connected requests that are planned in one piece. Larger sets are split, then joined. */
const PART_REQUESTS = 2_000;
/** Maximum requests of a key for which the plan is compared with composing them one by one, in linear time. */
const COMPARED_REQUESTS = 2_000;

/**
 * Plans the orders of blocks and requests together, to prefill as few tokens as possible. Builds trees in which every prompt is a path: joins the
 * two nodes that share most, then moves requests and branches to where they save more. Uses what is cached where that saves more than sharing
 * ({@link cachedStarts}). Execution is depth first, so a cache for a few prompts does as well as an unlimited one. Optimal trees are hard to find
 * (Liu et al. 2024); the distance to them is unknown.
 *
 * In a cache that evicts nothing, a key's requests hit no less than one by one by `prefix-exact`, for up to {@link COMPARED_REQUESTS}.
 *
 * Deterministic. A few seconds for 10,000 requests of 100 blocks; linear memory.
 */
export function sharedPrefixes(batch: NumberedBatch): BatchOrder {
  const scratch = new Uint8Array(batch.tokensOf.length);
  return executed(
    batch,
    batch.groups.flatMap((group, at) => planOfKey(batch, group, at, scratch)),
  );
}

/** The branches of one key's requests. @param scratch see {@link refined} */
function planOfKey(
  { sets, tokensOf }: NumberedBatch,
  group: KeyGroup,
  key: number,
  scratch: Uint8Array,
): PlannedBranch[] {
  // Requests with the same blocks are one node, represented by the earliest.
  const alike = groupBy(group.requests, (request) => blocksKey(sets[request] ?? []));
  const requestsAs = new Map([...alike.values()].map((requests) => [requests[0] ?? 0, requests]));
  const earliestAlike = [...requestsAs.keys()];
  const distinct = earliestAlike.map((request) => sets[request] ?? []);
  const cached = new CachedPrefixes(group, tokensOf);
  const trees: StartedTree[] = contextComponents(distinct).flatMap((component) => {
    const parts = component.length > PART_REQUESTS ? contextParts(distinct, component, PART_REQUESTS) : [component];
    const roots = parts.map((part) => {
      const requests = part.map((at) => requestNode(earliestAlike[at] ?? 0, distinct[at] ?? [], tokensOf));
      return refined(joinAll(requests, tokensOf), tokensOf, scratch);
    });
    return cachedStarts(joinAll(roots, tokensOf), cached, tokensOf);
  });
  if (group.requests.length > 1 && group.requests.length <= COMPARED_REQUESTS) {
    let saved = savedIn(trees);
    for (const [request, { length }] of requestsAs) saved += (length - 1) * tokensIn(sets[request] ?? [], tokensOf);
    const alone = oneByOne(group, sets, tokensOf, saved);
    if (alone !== null) return singleBranches(alone, key);
  }
  return trees.flatMap((tree) => branchesOf(tree, { sets, requestsAs, cached, key }));
}

/** A tree of prompts that begin with the same cached prefix, which may be empty. */
interface StartedTree {
  readonly root: PrefixNode;
  readonly start: CachedPrefix;
}

/**
 * Splits a tree into trees that begin with what is cached. A cached prefix is given up where sharing more blocks saves more. Never saves less than
 * `tree`, nor than every request with its longest cached prefix.
 */
function cachedStarts(tree: PrefixNode, cached: CachedPrefixes, tokensOf: Float64Array): StartedTree[] {
  if (cached.isEmpty) return [{ root: tree, start: NOTHING_CACHED }];
  return groupedByStart(cutApart(tree, cached, tokensOf), tokensOf);
}

function savedIn(trees: readonly StartedTree[]): number {
  return trees.reduce((sum, { root, start }) => sum + savedTokens(root) + start.tokens, 0);
}

/** Joins the trees that begin with the same cached prefix. */
function groupedByStart(started: readonly StartedTree[], tokensOf: Float64Array): StartedTree[] {
  return [...groupBy(started, ({ start }) => start.blocks.join()).values()].map((trees) => {
    const roots = trees.map(({ root }) => root);
    return { root: joinAll(roots, tokensOf), start: trees[0]?.start ?? NOTHING_CACHED };
  });
}

/** The most tokens that a node and its descendants can save, below a join or apart. */
interface CutValue {
  /** The longest cached prefix of the node's blocks. */
  readonly start: CachedPrefix;
  readonly below: number;
  readonly keeps: "both" | "first" | "second";
  readonly apart: number;
  readonly isWhole: boolean;
}

/** Cuts a tree where cached prefixes save more than joins do, by dynamic programming from the requests up. */
function cutApart(tree: PrefixNode, cached: CachedPrefixes, tokensOf: Float64Array): StartedTree[] {
  const nodes = [...nodesOf(tree)];
  const values = new Map<PrefixNode, CutValue>();
  for (const node of nodes.toReversed()) values.set(node, cutValue(node, values, cached));
  const isRoot = new Set([tree]);
  for (const node of nodes) {
    const { children } = node;
    if (children === null) continue;
    const { keeps, isWhole } = values.get(node) as CutValue;
    const [first, second] = children;
    if (isRoot.has(node)) {
      if (!isWhole) isRoot.add(first).add(second);
    } else if (keeps !== "both") isRoot.add(keeps === "first" ? second : first);
  }
  /** What replaces a node below a join, or as a tree of its own. */
  const kept = new Map<PrefixNode, PrefixNode>();
  const started: StartedTree[] = [];
  for (const node of nodes.toReversed()) {
    const keptNode = keptOf(node, kept, isRoot, tokensOf);
    if (keptNode === null) continue;
    keptNode.parent = null;
    if (!isRoot.has(node)) kept.set(node, keptNode);
    // A new joining node may have more blocks than the one that it replaces.
    else started.push({ root: keptNode, start: values.get(keptNode)?.start ?? cached.longest(keptNode.blocks) });
  }
  return started.reverse();
}

function cutValue(node: PrefixNode, values: ReadonlyMap<PrefixNode, CutValue>, cached: CachedPrefixes): CutValue {
  if (node.children === null) {
    const start = cached.longest(node.blocks);
    return { start, below: 0, keeps: "both", apart: start.tokens, isWhole: true };
  }
  const [a, b] = node.children.map((child) => values.get(child)) as [CutValue, CutValue];
  // A node has no block that its children lack, so no longer prefix either.
  const start = cached.longest(node.blocks, a.start.tokens < b.start.tokens ? a.start : b.start);
  const both = node.tokens + a.below + b.below;
  const first = a.below + b.apart;
  const second = a.apart + b.below;
  const below = Math.max(both, first, second);
  const keeps = below === both ? "both" : below === first ? "first" : "second";
  // Where joining saves nothing, requests stay apart.
  const isWhole = both + start.tokens > a.apart + b.apart;
  return { start, below, keeps, apart: isWhole ? both + start.tokens : a.apart + b.apart, isWhole };
}

/** A node with what is kept of its children; null for a node whose children are trees of their own. */
function keptOf(
  node: PrefixNode,
  kept: ReadonlyMap<PrefixNode, PrefixNode>,
  isRoot: ReadonlySet<PrefixNode>,
  tokensOf: Float64Array,
): PrefixNode | null {
  if (node.children === null) return node;
  const [first, second] = node.children.flatMap((child) => (isRoot.has(child) ? [] : (kept.get(child) ?? [])));
  if (first === undefined) return null;
  return second === undefined ? first : joined(first, second, tokensOf);
}

/** A request with its order, and its path in the tree of served sequences. */
interface RequestAlone {
  readonly request: number;
  readonly order: readonly number[];
  readonly path: readonly number[];
  /** Whether its first block was cached before the batch. */
  readonly isCached: boolean;
}

/** The orders of requests that are composed one by one by `prefix-exact`, depth first. Null unless they hit more than `least` tokens. */
function oneByOne(
  group: KeyGroup,
  sets: readonly (readonly number[])[],
  tokensOf: Float64Array,
  least: number,
): readonly RequestAlone[] | null {
  const cached = new CachedPrefixes(group, tokensOf);
  // An upper bound of their hits: a block that is not cached is computed once.
  const used = new Set(group.cached.flat());
  const reaches = group.requests.map((request) => {
    const again = (sets[request] ?? []).filter((block) => used.has(block));
    for (const block of sets[request] ?? []) used.add(block);
    return tokensIn(again, tokensOf);
  });
  let reach = reaches.reduce((sum, tokens) => sum + tokens, 0);
  const orders: (readonly number[])[] = [];
  for (const [at, request] of group.requests.entries()) {
    if (reach <= least) return null;
    const { order, hit } = cached.serveAlone(sets[request] ?? []);
    reach -= (reaches[at] ?? 0) - hit;
    orders.push(order);
  }
  if (reach <= least) return null;
  return orders
    .map((order, at) => {
      const path = cached.pathOf(order);
      return { request: group.requests[at] ?? 0, order, path, isCached: cached.isFromBefore(path) };
    })
    .sort((a, b) => comparePaths(a.path, b.path) || a.request - b.request);
}

/** Depth-first order; 0 for equal paths. */
function comparePaths(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    const difference = (a[at] as number) - (b[at] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

interface BranchRequest {
  readonly request: number;
  readonly order: readonly number[];
  readonly shared: number;
  /** Child positions after the branch's own. */
  readonly path: readonly number[];
}

/** Requests that begin alike, and no other. Executed back to back. */
interface PlannedBranch {
  readonly requests: readonly BranchRequest[];
  readonly earliest: number;
  /** Number of its key, in the order of the keys' earliest requests. */
  readonly key: number;
  /** The path of its cached prefix; null for none. */
  readonly cachedPath: readonly number[] | null;
}

interface KeyTrees {
  readonly sets: readonly (readonly number[])[];
  /** By the earliest of several requests with the same blocks. */
  readonly requestsAs: ReadonlyMap<number, readonly number[]>;
  readonly cached: CachedPrefixes;
  readonly key: number;
}

/** Puts branches in execution order: those cached before the batch first, least recently used first, as a full cache evicts them next. */
function executed({ sets, labels }: NumberedBatch, branches: readonly PlannedBranch[]): BatchOrder {
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

function singleBranches(alone: readonly RequestAlone[], key: number): PlannedBranch[] {
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

/** A tree's branches: itself, or its parts without common blocks. */
function branchesOf({ root, start }: StartedTree, trees: KeyTrees): PlannedBranch[] {
  const earliest = earliestRequests(root);
  return withoutEmpty(root).map((top) => ({
    requests: top.children === null ? requestsAlone(top, trees) : requestsBelow(top, start.blocks, earliest, trees),
    earliest: earliest.get(top) ?? 0,
    key: trees.key,
    cachedPath: start.blocks.length === 0 ? null : start.path,
  }));
}

/** Requests with the same blocks: later ones find the first one's order cached. */
function requestsAlone({ request }: PrefixNode, { sets, requestsAs, cached }: KeyTrees): BranchRequest[] {
  const order = cached.orderAlone(sets[request ?? 0] ?? []);
  return (requestsAs.get(request ?? 0) ?? []).map((each) => ({ request: each, order, shared: 0, path: [] }));
}

interface PlacedNode {
  readonly node: PrefixNode;
  /** The ancestors' blocks, in prompt order. */
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

function placed(children: readonly PrefixNode[], before: readonly number[], path: readonly number[]): PlacedNode[] {
  return children.map((node, position) => ({ node, before, path: [...path, position] })).reverse();
}

function earliestRequests(root: PrefixNode): Map<PrefixNode, number> {
  const earliest = new Map<PrefixNode, number>();
  for (const node of [...nodesOf(root)].reverse()) {
    const below = node.children?.map((child) => earliest.get(child) ?? 0);
    earliest.set(node, node.request ?? smallest(below ?? []));
  }
  return earliest;
}

/** A node's children. A child with the node's own blocks is replaced by its children. */
function alikeExpanded(node: PrefixNode): PrefixNode[] {
  const children: PrefixNode[] = [];
  const pending = [...(node.children ?? [])];
  for (let child = pending.pop(); child !== undefined; child = pending.pop()) {
    if (child.children !== null && child.blocks.length === node.blocks.length) append(pending, child.children);
    else children.push(child);
  }
  return children;
}

/** The node, or its nearest descendants that have blocks. */
function withoutEmpty(node: PrefixNode): PrefixNode[] {
  return node.children !== null && node.blocks.length === 0 ? alikeExpanded(node) : [node];
}
