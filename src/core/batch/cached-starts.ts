import { groupBy } from "../text/lists.js";
import { type CachedPrefix, type CachedPrefixes, NOTHING_CACHED } from "./cached-prefixes.js";
import { joined, nodesOf, type PrefixNode, savedTokens } from "./prefix-tree.js";
import { joinAll } from "./prefix-tree-building.js";

/** A tree of prompts that all begin with the same cached prefix; it may be empty. */
export interface StartedTree {
  readonly root: PrefixNode;
  readonly start: CachedPrefix;
}

/**
 * Splits a tree that was built for an empty cache into trees that begin with what is cached. A prompt begins either with a cached prefix or
 * with one that the batch computes: a cached prefix is given up where sharing more blocks with other requests saves more. A tree saves what
 * its joins do, plus its cached prefix once. Never saves less than `tree` does, nor than every request with its longest cached prefix.
 */
export function cachedStarts(tree: PrefixNode, cached: CachedPrefixes, tokensOf: Float64Array): StartedTree[] {
  if (cached.isEmpty) return [{ root: tree, start: NOTHING_CACHED }];
  return groupedByStart(cutApart(tree, cached, tokensOf), tokensOf);
}

/** Tokens that need no prefill when the trees' requests are served in preorder. */
export function savedIn(trees: readonly StartedTree[]): number {
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
    const keptNode = keptIn(node, kept, isRoot, tokensOf);
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
function keptIn(
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
