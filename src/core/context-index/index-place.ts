import type { Label } from "../text/ids.js";
import { append } from "../text/lists.js";
import type { IndexNode, PrefixMatch } from "./index-node.js";
import type { Used } from "./use-order.js";

/** A node of the context index in memory: its row, linked to the nodes before and behind it. */
export interface Place extends Used<Place> {
  readonly row: { -readonly [K in keyof IndexNode]: IndexNode[K] };
  /** The node that this one extends; the row's `parent`. */
  above: Place | null;
  /** The same, within one anchor: null on a root, which heads the list of its anchor's nodes by last use. */
  parent: Place | null;
  mark: number;
  /** By the first block of their run, so that a search need not visit all children. */
  readonly children: Map<Label, Place>;
  /** Anchors' roots whose prefix is a whole prompt that ended here. */
  readonly continuations: Set<Place>;
  /** Tokens of its run's blocks. */
  runTokens: number;
}

/** Whether nothing that is served extends this node's prefix. */
export function isLeaf({ children, continuations }: Place): boolean {
  return children.size === 0 && continuations.size === 0;
}

/** The nodes that directly extend this one's prefix. */
export function* placesBehind({ children, continuations }: Place): Generator<Place, void, undefined> {
  yield* children.values();
  yield* continuations;
}

/** A node and all its descendants, breadth first: each after its ancestor. */
export function branchOf(top: Place): Place[] {
  const branch = [top];
  for (let at = 0; at < branch.length; at++) append(branch, placesBehind(branch[at] as Place));
  return branch;
}

/**
 * Propagates last use from descendants to ancestors, after loading. Returns all nodes in LRU order; nodes of one request descendants first.
 */
export function inOrderOfUse(tops: Iterable<Place>): Place[] {
  const places = [...tops];
  for (let at = 0; at < places.length; at++) append(places, placesBehind(places[at] as Place));
  places.reverse();
  for (const { row, above } of places) {
    if (above === null) continue;
    above.row.lastUsed = Math.max(above.row.lastUsed, row.lastUsed);
    above.row.usedAt = Math.max(above.row.usedAt, row.usedAt);
  }
  return places.sort((a, b) => a.row.lastUsed - b.row.lastUsed);
}

/** The nodes from this one up to its anchor's root, inclusive. */
export function* upToAnchor(place: Place): Generator<Place, void, undefined> {
  for (let step: Place | null = place; step !== null; step = step.row.anchor === null ? step.above : null) yield step;
}

/** Tokens from the start of the prompt to the end of the node's blocks. */
export function depthOf(place: Place): number {
  let tokens = 0;
  for (const { row, runTokens } of upToAnchor(place)) tokens += row.anchor === null ? runTokens : row.tokens;
  return tokens;
}

/**
 * The cached tokens that this node adds to its parent's prefix; the sum over a tree counts every prefix once. For an anchor's root: its
 * prefix less the prompt's blocks that it extends. For another node: its blocks, plus the text after them if no prompt extends it. The text
 * after the blocks counts only for the last request that ended here.
 */
export function ownTokens(place: Place): number {
  const { row, above, runTokens, continuations } = place;
  if (row.anchor === null) return runTokens + (continuations.size === 0 ? row.tokens : 0);
  return above === null ? row.tokens : Math.max(0, row.tokens - depthOf(above));
}

/** The blocks from the anchor to this node, with the first `taken` of its own run, and its search path. */
export function pathTo(place: Place, taken: number): Omit<PrefixMatch, "tokens"> {
  const labels: (readonly Label[])[] = [];
  const searchPath: number[] = [];
  for (const { row } of upToAnchor(place)) {
    if (row.anchor !== null) break;
    labels.push(row === place.row ? row.run.slice(0, taken) : row.run);
    searchPath.push(row.position);
  }
  return { labels: labels.reverse().flat(), searchPath: searchPath.reverse() };
}
