import { ContextIndex, followSequence } from "../cache/context-index.js";
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

/** A cached prefix, in the numbers of a batch. */
interface CachedPrefix {
  /** Blocks in cached order. */
  readonly blocks: readonly number[];
  readonly tokens: number;
  /** Child positions in the tree of cached sequences, in which older sequences come first. */
  readonly path: readonly number[];
}

const NOTHING_CACHED: CachedPrefix = { blocks: [], tokens: 0, path: [] };

/** All sequences of one key share it. */
const ANCHOR = "" as Digest;

/**
 * What should be cached after one key's bytes, and the requests expected to come back: a context index and recent requests of the plan's own,
 * in a batch's block numbers. As if the cache evicted nothing while the batch is executed.
 */
class CachedPrefixes {
  /** Null until something is looked up that is not empty: most batches have many keys of which nothing is known. */
  #known: ScopeKnowledge | null = null;
  /** How many first blocks are cached before anything is served. */
  #before = 0;
  #clock = 0;

  constructor(
    private readonly from: Pick<KeyGroup, "cached" | "recent">,
    private readonly tokensOf: Float64Array,
  ) {}

  /** Whether nothing was cached before anything is served. */
  get isEmpty(): boolean {
    return this.from.cached.length === 0;
  }

  /**
   * The cached prefix with the most tokens whose every block is among `blocks`.
   *
   * @param limit a prefix that no result exceeds in tokens: if all its blocks are there, it is the result
   */
  longest(blocks: readonly number[], limit: CachedPrefix | null = null): CachedPrefix {
    if (this.isEmpty || limit?.tokens === 0) return NOTHING_CACHED;
    const wanted = new Map(blocks.map((block) => [block as Label, this.tokensOf[block] as number]));
    if (limit?.blocks.every((block) => wanted.has(block as Label))) return limit;
    const { labels, tokens, searchPath } = searchPrefix(this.#built().index.root(ANCHOR), wanted);
    return { blocks: labels, tokens, path: searchPath };
  }

  /** The order of a request that shares nothing with the batch: what `prefix-exact` gives. */
  orderAlone(set: readonly number[]): readonly number[] {
    if (this.isEmpty && this.from.recent.length === 0 && this.#clock === 0) return set;
    return prefixExact.order({ anchor: ANCHOR, retrieved: this.#weighed(set), carrying: null }, this.#built()).labels;
  }

  /** Orders blocks after those in `front` for later batches: as `prefix-exact` orders the rest of a request for the blocks in `asked`. */
  orderShared(front: readonly number[], blocks: readonly number[], asked: readonly number[]): readonly number[] {
    if (this.from.recent.length === 0) return blocks;
    const { recent } = this.#built();
    return orderForReuse(front as readonly Label[], this.#weighed(blocks), asked as readonly Label[], recent);
  }

  /** Serves a request as if it came by itself: {@link orderAlone}, cached afterwards. Returns the order and the tokens that it hits. */
  serveAlone(set: readonly number[]): { readonly order: readonly number[]; readonly hit: number } {
    const order = this.orderAlone(set) as readonly Label[];
    const { index, recent } = this.#built();
    const held = index.heldBlocks(ANCHOR, order);
    index.insert(ANCHOR, order, ++this.#clock);
    recent.take(set as readonly Label[], this.#clock as TurnId);
    return { order, hit: tokensIn(order.slice(0, held), this.tokensOf) };
  }

  /** Child positions to the end of a served sequence: sequences that begin alike have paths that begin alike. */
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

/** Maximum connected requests that are planned in one piece; larger sets are split into parts, which are joined afterwards. */
const PART_REQUESTS = 2_000;
/** Maximum requests of one key for which the plan is compared with composing them one by one: that takes time in proportion to them. */
const COMPARED_REQUESTS = 2_000;

/**
 * Plans the blocks' orders and the requests' order together, so that serving them prefills as few tokens as possible; memprefix's own. Builds
 * trees in which every prompt is a path: the blocks common to all prompts below a node come before all others. Greedily joins the two
 * nodes that share most, then moves requests and branches to where they save more. What should be cached already is used where that saves
 * more than sharing ({@link cachedStarts}). Execution is depth first: a prefix is computed once, reused by all its requests back to back,
 * and may be evicted after the last of them, so a cache with room for a few prompts does as well as an unlimited one. What was cached
 * before is used first. Finding the optimal trees is hard (as for the order of columns and rows, Liu et al. 2024); the distance to them is
 * unknown.
 *
 * In a cache that evicts nothing, the requests of a key hit no less than they would one by one by `prefix-exact`, where a key has at most
 * {@link COMPARED_REQUESTS}: those orders are taken where they hit more.
 *
 * Deterministic. A few seconds for 10,000 requests of 100 blocks; memory is linear in the blocks of all requests and of what is cached.
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

/** A tree of prompts that all begin with the same cached prefix; it may be empty. */
interface StartedTree {
  readonly root: PrefixNode;
  readonly start: CachedPrefix;
}

/**
 * Splits a tree that was built for an empty cache into trees that begin with what is cached. A prompt begins either with a cached prefix or
 * with one that the batch computes: a cached prefix is given up where sharing more blocks with other requests saves more. A tree saves what
 * its joins do, plus its cached prefix once. Never saves less than `tree` does, nor than every request with its longest cached prefix.
 */
function cachedStarts(tree: PrefixNode, cached: CachedPrefixes, tokensOf: Float64Array): StartedTree[] {
  if (cached.isEmpty) return [{ root: tree, start: NOTHING_CACHED }];
  return groupedByStart(cutApart(tree, cached, tokensOf), tokensOf);
}

/** Tokens that need no prefill when the trees' requests are served in preorder. */
function savedIn(trees: readonly StartedTree[]): number {
  return trees.reduce((sum, { root, start }) => sum + savedTokens(root) + start.tokens, 0);
}

/** Joins the trees that begin with the same cached prefix: they share at least that. */
function groupedByStart(started: readonly StartedTree[], tokensOf: Float64Array): StartedTree[] {
  return [...groupBy(started, ({ start }) => start.blocks.join()).values()].map((trees) => {
    const roots = trees.map(({ root }) => root);
    return { root: joinAll(roots, tokensOf), start: trees[0]?.start ?? NOTHING_CACHED };
  });
}

/** The best of a node and its descendants, in tokens saved. */
interface CutValue {
  /** The longest cached prefix of the node's blocks. */
  readonly start: CachedPrefix;
  /** Below a join: parts of it may be cut off, the node itself stays. */
  readonly below: number;
  readonly keeps: "both" | "first" | "second";
  /** As a tree of its own, or several. */
  readonly apart: number;
  readonly isWhole: boolean;
}

/**
 * Cuts a tree where cached prefixes save more than joins do: the best choice of all, by dynamic programming from the requests up. Builds new
 * joining nodes and leaves those of `tree` as they are, except for the parents of its requests.
 */
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
  /** What stands in a node's place below a join, or as a tree of its own. */
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
  // A node has no block that its children do not have, so it has no longer prefix than they.
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

/** A request with its order, and the child positions of its end in the tree of served sequences. */
interface RequestAlone {
  readonly request: number;
  readonly order: readonly number[];
  /** Empty for a request without blocks. */
  readonly path: readonly number[];
  /** Whether it begins with a block that was cached before the first of the requests. */
  readonly isCached: boolean;
}

/**
 * The orders of requests that are composed one after the other by `prefix-exact`, in a cache that evicts nothing. Null unless they hit more
 * than `least` tokens. In depth-first order of the tree of served sequences, so that what two of them share is used back to back; what they
 * hit in such a cache does not depend on the execution order.
 */
function oneByOne(
  group: KeyGroup,
  sets: readonly (readonly number[])[],
  tokensOf: Float64Array,
  least: number,
): readonly RequestAlone[] | null {
  const cached = new CachedPrefixes(group, tokensOf);
  // What they can still hit at most: a block that is not cached is computed once.
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

/** Negative if `a` comes before `b` depth first; 0 for equal paths. */
function comparePaths(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    const difference = (a[at] as number) - (b[at] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** A request's place within its branch. */
interface BranchRequest {
  readonly request: number;
  readonly order: readonly number[];
  /** See `PlannedRequest.shared`. */
  readonly shared: number;
  /** Child positions after the branch's own; empty: the branch is this request's. */
  readonly path: readonly number[];
}

/** Requests that begin alike, and no other: executed back to back, depth first. */
interface PlannedBranch {
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

/** The branches of requests that were ordered one by one; every place in their orders counts. */
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

/** The branches of a tree: itself, or its parts without blocks in common. */
function branchesOf({ root, start }: StartedTree, trees: KeyTrees): PlannedBranch[] {
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
