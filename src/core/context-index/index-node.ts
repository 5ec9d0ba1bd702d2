import type { Digest, Label, NodeId } from "../text/ids.js";
import { append } from "../text/lists.js";

/**
 * A node of the context index, as stored. The index is a radix tree over *served sequences*: a node stands for the blocks from its anchor's
 * root to itself, in the order an engine has seen them, behind the prompt prefix that the anchor identifies.
 */
export interface IndexNode {
  readonly id: NodeId;
  /**
   * The node that this one extends. On an anchor's root: the end of the earlier turn whose whole prompt is a prefix of this root's; null
   * for none. So an engine that holds a node holds all its ancestors.
   */
  readonly parent: NodeId | null;
  /** Digest of the prompt before the blocks; only on an anchor's root. */
  readonly anchor: Digest | null;
  /** Blocks between the parent and this node; empty only on an anchor's root. */
  run: readonly Label[];
  /** Child position under the parent, never reused; search paths consist of these. */
  position: number;
  /** Position of the next new child. */
  nextPosition: number;
  /** Requests that passed through this node or ended here. */
  uses: number;
  /** Requests that ended here and are not evicted. */
  live: number;
  /** The scope's request counter at the last use: a logical clock. */
  lastUsed: number;
  /** Time of the last use, in milliseconds since the epoch; */
  usedAt: number;
  /**
   * Tokens that belong to no block. On an anchor's root: the prompt before the blocks. On another node: the rest of the prompt (question,
   * annotations) of the last request that ended here.
   */
  tokens: number;
}

/** A node of the served sequences, read-only. */
export interface ServedNode {
  readonly row: Pick<IndexNode, "id" | "run" | "position" | "uses" | "lastUsed">;
  readonly children: ReadonlyMap<Label, ServedNode>;
  /** Null on the root of an anchor. */
  readonly parent: ServedNode | null;
  /** The next less recently used node behind the same anchor. */
  readonly staler: ServedNode | null;
  /** Scratch of the running search; meaningless otherwise. */
  mark: number;
}

/** What is known of a served prompt besides its blocks. Tokens are estimates of the configured counter. */
export interface ServedPrompt {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The end of the earlier turn whose whole prompt is a prefix of this one; null for none. */
  readonly follows: NodeId | null;
  /** Tokens before the blocks, the section's opening included. */
  readonly tokensBefore: number;
  /** Tokens after the blocks. */
  readonly tokensBehind: number;
}

/** The longest sequence of wanted blocks that should be cached behind an anchor. */
export interface PrefixMatch {
  readonly labels: readonly Label[];
  readonly tokens: number;
  /** Child positions from the anchor's root to the node where the match ends. */
  readonly searchPath: readonly number[];
}

/** What requests can use of a served sequence. */
export interface UsablePath {
  readonly labels: readonly Label[];
  /** The scope's request counter at the last use. */
  readonly lastUsed: number;
}

/** A node where the blocks of prompts that should be cached end. */
export interface HeldEnd {
  readonly id: NodeId;
  /** How many prompts ended here. */
  readonly live: number;
  readonly lastUsed: number;
  /** Tokens of the whole prompt that ended here last. */
  readonly tokens: number;
}

/** An anchor of a prompt, and the prompt's blocks right behind it. */
export interface PassedAnchor {
  readonly anchor: Digest;
  readonly labels: readonly Label[];
}

/** What changed since the last drain, to be stored in one transaction. */
export interface IndexChanges {
  readonly upserted: readonly IndexNode[];
  readonly removed: readonly NodeId[];
}

/** A node with its search path, for display. */
export interface IndexEntry {
  readonly id: NodeId;
  readonly searchPath: readonly number[];
  readonly labels: readonly Label[];
  readonly uses: number;
  readonly live: number;
  readonly lastUsed: number;
  /** Milliseconds since the epoch; 0: not known. */
  readonly usedAt: number;
  /** Of its run's blocks; of an anchor's root, of the prompt before the blocks. Estimated. */
  readonly tokens: number;
  /** Of the whole prefix that ends with its run. */
  readonly totalTokens: number;
}

/** A node of the context index in memory: its row, linked to the nodes before and behind it. */
export interface Place {
  readonly row: { -readonly [K in keyof IndexNode]: IndexNode[K] };
  /** The node that this one extends; the row's `parent`. */
  above: Place | null;
  /** The same, within one anchor: null on a root, which heads the list of its anchor's nodes by last use. */
  parent: Place | null;
  /**
   * Neighbours in the list of its anchor's nodes by last use, most recent first; nodes used by one request from the root down. So parents
   * come before children, and a pass over the list can build each node's result on its parent's.
   */
  fresher: Place | null;
  staler: Place | null;
  mark: number;
  /** By the first block of their run, so that a search need not visit all children. */
  children: ReadonlyMap<Label, Place>;
  /** Anchors' roots whose prefix is a whole prompt that ended here. */
  continuations: ReadonlySet<Place>;
  /** Tokens of its run's blocks. */
  runTokens: number;
}

/** Of a node that has none, as most: tables of their own would be half of an index's memory. Never written. */
export const NO_CHILDREN: ReadonlyMap<Label, Place> = new Map();
export const NO_CONTINUATIONS: ReadonlySet<Place> = new Set();

export function addChild(parent: Place, child: Place): void {
  const { children } = parent;
  const first = child.row.run[0] as Label;
  if (children !== NO_CHILDREN && children instanceof Map) children.set(first, child);
  else parent.children = new Map([[first, child]]);
}

export function removeChild({ children }: Place, child: Place): void {
  if (children !== NO_CHILDREN && children instanceof Map) children.delete(child.row.run[0]);
}

export function addContinuation(end: Place, root: Place): void {
  const { continuations } = end;
  if (continuations !== NO_CONTINUATIONS && continuations instanceof Set) continuations.add(root);
  else end.continuations = new Set([root]);
}

export function removeContinuation({ continuations }: Place, root: Place): void {
  if (continuations !== NO_CONTINUATIONS && continuations instanceof Set) continuations.delete(root);
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

/** Moves a node right behind a more recently used one. O(1), because it runs for every node that a request uses. */
export function placeBehind(node: Place, fresher: Place): void {
  if (fresher.staler === node) return;
  takeOut(node);
  node.fresher = fresher;
  node.staler = fresher.staler;
  if (node.staler !== null) node.staler.fresher = node;
  fresher.staler = node;
}

export function takeOut(node: Place): void {
  if (node.fresher !== null) node.fresher.staler = node.staler;
  if (node.staler !== null) node.staler.fresher = node.fresher;
  node.fresher = null;
  node.staler = null;
}

/** After loading: lists all nodes below a root, which heads the list. */
export function listByUse(root: Place): void {
  const listed = fromTheTop(root).sort((a, b) => b.row.lastUsed - a.row.lastUsed);
  for (const [at, node] of listed.entries()) if (at > 0) placeBehind(node, listed[at - 1] as Place);
}

/** Throws if the list misses a node of the tree or breaks the order; for tests. */
export function checkListByUse(root: Place): void {
  const listed = new Set<Place>();
  for (let node: Place | null = root; node !== null; node = node.staler) {
    const { row, parent, staler }: Place = node;
    if (parent === null ? node !== root : !listed.has(parent)) throw new Error(`node ${row.id}: before its parent`);
    if (staler !== null && (staler.fresher !== node || staler.row.lastUsed > row.lastUsed))
      throw new Error(`node ${row.id}: before one that is fresher`);
    listed.add(node);
  }
  for (const node of fromTheTop(root)) if (!listed.has(node)) throw new Error(`node ${node.row.id}: not listed`);
}

/** All nodes of a tree, parents before their children. */
function fromTheTop(root: Place): Place[] {
  const nodes = [root];
  for (const node of nodes) for (const child of node.children.values()) nodes.push(child);
  return nodes;
}
