import type { Label } from "../text/ids.js";
import { append } from "../text/lists.js";
import type { IndexNode, PrefixMatch } from "./index-node.js";
import type { Used } from "./use-order.js";

/** A node of the context index in memory: its row, linked to what stands before and behind it. */
export interface Place extends Used<Place> {
  readonly row: { -readonly [K in keyof IndexNode]: IndexNode[K] };
  /** The node whose prefix this one's goes on from, as the row's `parent` names it. */
  above: Place | null;
  /** The same where it is a node behind the same anchor; null on a root, which heads the list of its anchor's nodes by last use. */
  parent: Place | null;
  mark: number;
  /** By the first block of their run: the inversion that keeps a search from looking at all children. */
  readonly children: Map<Label, Place>;
  /** Roots of anchors whose beginning holds a whole prompt that ended here. */
  readonly continuations: Set<Place>;
  /** Tokens of its run's blocks. */
  runTokens: number;
}

/** Whether nothing that is served stands behind this node's prefix. */
export function isLeaf({ children, continuations }: Place): boolean {
  return children.size === 0 && continuations.size === 0;
}

/** The nodes directly behind this one's prefix. */
export function* placesBehind({ children, continuations }: Place): Generator<Place, void, undefined> {
  yield* children.values();
  yield* continuations;
}

/** A node and everything behind it, in an order in which each stands behind those before it or beside them. */
export function branchOf(top: Place): Place[] {
  const branch = [top];
  for (let at = 0; at < branch.length; at++) append(branch, placesBehind(branch[at] as Place));
  return branch;
}

/** The nodes from this one up to its anchor's root, both included. */
export function* upToAnchor(place: Place): Generator<Place, void, undefined> {
  for (let step: Place | null = place; step !== null; step = step.row.anchor === null ? step.above : null) yield step;
}

/** Tokens from the beginning of the prompt to the end of the node's blocks. */
export function depthOf(place: Place): number {
  let tokens = 0;
  for (const { row, runTokens } of upToAnchor(place)) tokens += row.anchor === null ? runTokens : row.tokens;
  return tokens;
}

/**
 * Tokens that an engine holds on this node's account, so that those of a whole tree add up to each prefix counted once: of an anchor's
 * root what its beginning adds to the blocks of the prompt that it goes on from, of another node its blocks and, where nothing goes on
 * from it, what stood behind them. What stood behind them in requests before the last that ended here is not counted.
 */
export function ownTokens(place: Place): number {
  const { row, above, runTokens, continuations } = place;
  if (row.anchor === null) return runTokens + (continuations.size === 0 ? row.tokens : 0);
  return above === null ? row.tokens : Math.max(0, row.tokens - depthOf(above));
}

/** The blocks from the anchor to this node, with the first `taken` of its own run, and the way there. */
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
