import { append, ChangedRows, type RowChanges } from "../text/collections.js";
import type { Digest, Label, NodeId } from "../text/ids.js";

/**
 * A node of the context index, as stored. The index is a radix tree over *served sequences*: a node stands for the blocks from its anchor's
 * root to itself, in the order an engine has seen them, after the prompt prefix that the anchor identifies.
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
  /** The next less recently used node after the same anchor. */
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

/** The longest sequence of wanted blocks that should be cached after an anchor. */
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

/** An anchor of a prompt, and the prompt's blocks right after it. */
export interface PassedAnchor {
  readonly anchor: Digest;
  readonly labels: readonly Label[];
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

/** A node of the context index in memory: its row, linked to the nodes before and after it. */
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
const NO_CHILDREN: ReadonlyMap<Label, Place> = new Map();
const NO_CONTINUATIONS: ReadonlySet<Place> = new Set();

function addChild(parent: Place, child: Place): void {
  const { children } = parent;
  const first = child.row.run[0] as Label;
  if (children !== NO_CHILDREN && children instanceof Map) children.set(first, child);
  else parent.children = new Map([[first, child]]);
}

function removeChild({ children }: Place, child: Place): void {
  if (children !== NO_CHILDREN && children instanceof Map) children.delete(child.row.run[0]);
}

function addContinuation(end: Place, root: Place): void {
  const { continuations } = end;
  if (continuations !== NO_CONTINUATIONS && continuations instanceof Set) continuations.add(root);
  else end.continuations = new Set([root]);
}

function removeContinuation({ continuations }: Place, root: Place): void {
  if (continuations !== NO_CONTINUATIONS && continuations instanceof Set) continuations.delete(root);
}

/** Whether nothing that is served extends this node's prefix. */
export function isLeaf({ children, continuations }: Place): boolean {
  return children.size === 0 && continuations.size === 0;
}

/** The nodes that directly extend this one's prefix. */
export function* placesAfter({ children, continuations }: Place): Generator<Place, void, undefined> {
  yield* children.values();
  yield* continuations;
}

/** A node and all its descendants, breadth first: each after its ancestor. */
function branchOf(top: Place): Place[] {
  const branch = [top];
  for (let at = 0; at < branch.length; at++) append(branch, placesAfter(branch[at] as Place));
  return branch;
}

/**
 * Propagates last use from descendants to ancestors, after loading. Returns all nodes in LRU order; nodes of one request descendants first.
 */
function inOrderOfUse(tops: Iterable<Place>): Place[] {
  const places = [...tops];
  for (let at = 0; at < places.length; at++) append(places, placesAfter(places[at] as Place));
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
function ownTokens(place: Place): number {
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

/** Moves a node right after a more recently used one. O(1), because it runs for every node that a request uses. */
function placeAfter(node: Place, fresher: Place): void {
  if (fresher.staler === node) return;
  takeOut(node);
  node.fresher = fresher;
  node.staler = fresher.staler;
  if (node.staler !== null) node.staler.fresher = node;
  fresher.staler = node;
}

function takeOut(node: Place): void {
  if (node.fresher !== null) node.fresher.staler = node.staler;
  if (node.staler !== null) node.staler.fresher = node.fresher;
  node.fresher = null;
  node.staler = null;
}

/** After loading: lists all nodes below a root, which heads the list. */
function listByUse(root: Place): void {
  const listed = fromTheTop(root).sort((a, b) => b.row.lastUsed - a.row.lastUsed);
  for (const [at, node] of listed.entries()) if (at > 0) placeAfter(node, listed[at - 1] as Place);
}

/** Throws if the list misses a node of the tree or breaks the order; for tests. */
function checkListByUse(root: Place): void {
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

/** Tokens of a block's line. */
export type BlockTokens = (label: Label) => number;

/**
 * The nodes of a context index and their structural changes: add, split, join, cut. Maintains links, LRU order, token counts and the rows
 * to store. The meaning of a change is the index's concern.
 *
 * A node is never older than its descendants. Using a turn of a long conversation refreshes all turns before it; instead of writing each of
 * their rows, loading derives the time from the descendants, and removing a descendant writes its parent's row.
 */
export class PrefixForest {
  /** LRU order; within one request, descendants before ancestors. */
  readonly places = new Map<NodeId, Place>();
  readonly anchors = new Map<Digest, Place>();
  readonly #changes = new ChangedRows<NodeId>();
  #nextId: number;
  #labelBound = 0;
  #tokens = 0;

  constructor(
    rows: readonly IndexNode[],
    nextId: number,
    readonly blockTokens: BlockTokens,
  ) {
    this.#nextId = nextId;
    for (const row of rows) this.places.set(row.id, this.#placeOf({ ...row }, null));
    for (const place of this.places.values()) {
      const { parent, id } = place.row;
      if (parent === null) continue;
      place.above = this.places.get(parent) ?? null;
      if (place.above === null) throw new Error(`context index: node ${id} has no parent`);
    }
    for (const place of this.places.values()) this.#link(place);
    const ordered = inOrderOfUse(this.tops());
    if (ordered.length !== this.places.size) throw new Error("context index: nodes go on from each other in a circle");
    this.places.clear();
    for (const place of ordered) this.places.set(place.row.id, place);
    for (const root of this.anchors.values()) listByUse(root);
    this.#countTokens();
  }

  /** Exclusive upper bound of all labels that it ever held. */
  get labelBound(): number {
    return this.#labelBound;
  }

  get nextId(): number {
    return this.#nextId;
  }

  /** Tokens of an engine's cache that holds all nodes, each prefix once. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Anchors' roots that extend no other prompt. */
  *tops(): Generator<Place, void, undefined> {
    for (const place of this.anchors.values()) if (place.above === null) yield place;
  }

  add(above: Place | null, anchor: Digest | null, run: readonly Label[], position: number, tokens = 0): Place {
    const id = this.#nextId++ as NodeId;
    const parent = above?.row.id ?? null;
    const row = {
      id,
      parent,
      anchor,
      run,
      position,
      nextPosition: 0,
      uses: 0,
      live: 0,
      lastUsed: 0,
      usedAt: 0,
      tokens,
    };
    const place = this.#placeOf(row, above);
    this.places.set(id, place);
    this.#reweigh(above, () => this.#link(place));
    this.#tokens += ownTokens(place);
    this.#changes.written(id);
    return place;
  }

  /** Inserts a node with the first `length` blocks between `place` and its parent; `place` keeps its id and descendants. */
  split(place: Place, length: number): Place {
    const { run, position, uses, lastUsed, usedAt } = place.row;
    this.#tokens -= ownTokens(place);
    const upper = this.add(place.above, null, run.slice(0, length), position);
    Object.assign(upper.row, { nextPosition: 1, uses, lastUsed, usedAt });
    Object.assign(place.row, { parent: upper.row.id, position: 0 });
    place.above = upper;
    this.#setRun(place, run.slice(length));
    this.#link(place);
    this.#tokens += ownTokens(place);
    return upper;
  }

  /** Truncates a leaf's run to its first `length` blocks. */
  shorten(place: Place, length: number): void {
    this.#reweigh(place, () => {
      this.#setRun(place, place.row.run.slice(0, length));
      place.row.tokens = 0;
    });
  }

  /** Sets the tokens before an anchor's blocks. */
  setTokensBefore(root: Place, tokens: number): void {
    if (root.row.tokens === tokens) return;
    root.row.tokens = tokens;
    this.#changes.written(root.row.id);
    // Affects the weight of every prompt that extends this one.
    this.#countTokens();
  }

  /** Sets the tokens after a sequence that ends at this node. */
  setTokensAfter(place: Place, tokens: number): void {
    if (place.row.tokens === tokens) return;
    this.#reweigh(place, () => {
      place.row.tokens = tokens;
    });
    this.#changes.written(place.row.id);
  }

  /** Adds or removes a request that ends at the node. */
  countLive(place: Place, by: 1 | -1): void {
    place.row.live += by;
    this.#changes.written(place.row.id);
  }

  /** Records that a request that ended at `end` used it and its ancestors, at logical time `clock` and `at` in milliseconds. */
  use(end: Place, clock: number, at: number): void {
    let isOwn = true;
    let afterAnchor: Place[] = [];
    for (let place: Place | null = end; place !== null; place = place.above) {
      const { row } = place;
      if (row.anchor === null) afterAnchor.push(place);
      else {
        let fresher = place;
        for (const node of afterAnchor.reverse()) {
          placeAfter(node, fresher);
          fresher = node;
        }
        afterAnchor = [];
      }
      row.lastUsed = clock;
      row.usedAt = Math.max(row.usedAt, at);
      this.places.delete(row.id);
      this.places.set(row.id, place);
      if (isOwn) {
        row.uses++;
        this.#changes.written(row.id);
      }
      isOwn &&= row.anchor === null;
    }
  }

  /** Records that the node and its ancestors were still cached at time `at`, in milliseconds. */
  refresh(end: Place, at: number): void {
    let isOwn = true;
    for (let place: Place | null = end; place !== null; place = place.above) {
      const { row } = place;
      if (row.usedAt < at) {
        row.usedAt = at;
        if (isOwn) this.#changes.written(row.id);
      }
      isOwn &&= row.anchor === null;
    }
  }

  /** Removes a leaf with the requests that ended there, and the ancestors that die with it. */
  cut(leaf: Place): void {
    leaf.row.live = 0;
    this.prune(leaf);
  }

  /** Removes at least so many tokens from the end of a leaf, whole blocks; the whole leaf if it has no more. */
  cutBack(leaf: Place, tokens: number): void {
    const { run } = leaf.row;
    let taken = leaf.row.tokens;
    let length = run.length;
    while (taken < tokens && length > 0) taken += this.blockTokens(run[--length] as Label);
    if (length === 0) this.cut(leaf);
    else if (length < run.length) this.shorten(leaf, length);
    else this.setTokensAfter(leaf, 0);
  }

  /** Removes a dead leaf and the ancestors that die with it; joins a node that is left with one child and no own requests to that child. */
  prune(from: Place): void {
    let place: Place | null = from;
    while (place !== null && place.row.live === 0 && isLeaf(place)) {
      const { above }: Place = place;
      this.#remove(place);
      place = above;
    }
    if (place === null || place.row.anchor !== null || place.row.live > 0 || place.continuations.size > 0) return;
    const [child] = place.children.values();
    if (place.children.size === 1 && child !== undefined) this.#join(place, child);
  }

  /** Removes a node and its descendants. Returns their number; the caller prunes the ancestors. */
  removeBranch(top: Place): number {
    const branch = branchOf(top);
    for (const place of branch.reverse()) this.#remove(place);
    return branch.length;
  }

  /** Detaches a root from the prompt that it extends. */
  cutAbove(root: Place): void {
    const { above } = root;
    if (above === null) return;
    this.#tokens -= ownTokens(root);
    this.#reweigh(above, () => removeContinuation(above, root));
    root.above = null;
    root.row.parent = null;
    this.#tokens += ownTokens(root);
    this.#changes.written(root.row.id);
    this.#changes.written(above.row.id);
  }

  /** Returns and resets what changed since the last call. */
  drain(): RowChanges<NodeId, IndexNode> {
    return this.#changes.drain((id) => {
      const place = this.places.get(id);
      return place && { ...place.row };
    });
  }

  /** All nodes' rows by id: copies, as rows change. Their times of use are those that loading older rows derives. */
  stored(): IndexNode[] {
    return Array.from(this.places.values(), ({ row }) => ({ ...row })).sort((a, b) => a.id - b.id);
  }

  #placeOf(row: IndexNode, above: Place | null): Place {
    for (const label of row.run) if (label >= this.#labelBound) this.#labelBound = label + 1;
    return {
      row,
      above,
      parent: null,
      fresher: null,
      staler: null,
      mark: 0,
      children: NO_CHILDREN,
      continuations: NO_CONTINUATIONS,
      runTokens: this.#tokensOf(row.run),
    };
  }

  #tokensOf(run: readonly Label[]): number {
    return run.reduce((tokens, label) => tokens + this.blockTokens(label), 0);
  }

  #setRun(place: Place, run: readonly Label[]): void {
    place.row.run = run;
    place.runTokens = this.#tokensOf(run);
    this.#changes.written(place.row.id);
  }

  #link(place: Place): void {
    const { row, above } = place;
    if (row.anchor === null) {
      place.parent = above;
      if (above !== null) addChild(above, place);
    } else {
      this.anchors.set(row.anchor, place);
      if (above !== null) addContinuation(above, place);
    }
  }

  /** Makes a change that affects the node's own tokens. */
  #reweigh(place: Place | null, change: () => void): void {
    if (place !== null) this.#tokens -= ownTokens(place);
    change();
    if (place !== null) this.#tokens += ownTokens(place);
  }

  #join(place: Place, child: Place): void {
    const { run, position, parent, id } = place.row;
    const { above } = place;
    this.#tokens -= ownTokens(place) + ownTokens(child);
    Object.assign(child.row, { parent, position });
    child.above = above;
    this.#setRun(child, [...run, ...child.row.run]);
    this.#link(child);
    this.#tokens += ownTokens(child);
    takeOut(place);
    this.places.delete(id);
    this.#forgetRow(id, above);
  }

  #remove(place: Place): void {
    const { row, above } = place;
    this.#tokens -= ownTokens(place);
    if (row.anchor !== null) this.anchors.delete(row.anchor);
    if (above !== null && row.anchor === null) removeChild(above, place);
    else this.#reweigh(above, () => above !== null && removeContinuation(above, place));
    takeOut(place);
    this.places.delete(row.id);
    this.#forgetRow(row.id, above);
  }

  /** The removed row carried its parent's last use: now the parent's own row has to be written. */
  #forgetRow(id: NodeId, above: Place | null): void {
    this.#changes.removed(id);
    if (above !== null) this.#changes.written(above.row.id);
  }

  #countTokens(): void {
    this.#tokens = 0;
    for (const place of this.places.values()) this.#tokens += ownTokens(place);
  }
}

/*
 * Read-only searches of the sequences served after one anchor (docs/internals/algorithms.md, "Prefix-exact ordering").
 */

/** A node whose children have the same type, which a search returns. */
interface TreeNode<N> extends ServedNode {
  readonly children: ReadonlyMap<Label, N & ServedNode>;
}

interface WantedBlocks {
  readonly size: number;
  has(label: Label): boolean;
  keys(): Iterable<Label>;
}

/** The blocks of a request, with the tokens that each saves: a map, or what can be asked like one. */
export interface WantedTokens extends WantedBlocks {
  get(label: Label): number | undefined;
}

/** The end of a search: a number of blocks into a node's run. */
export interface FoundPrefix<N extends ServedNode> {
  readonly node: N;
  readonly taken: number;
  /** Tokens of the blocks on the path. */
  readonly tokens: number;
}

/**
 * The served path with the most tokens among those whose every block is wanted; null for none. Exact, not greedy: visits every path of
 * wanted blocks, and only children that start with a wanted block. Ties go to the most recently used path, then to the older node.
 */
export function searchPrefix<N extends TreeNode<N>>(root: N, wanted: WantedTokens): FoundPrefix<N> | null {
  let best: FoundPrefix<N> = { node: root, taken: 0, tokens: 0 };
  const pending: { node: N; tokens: number }[] = [{ node: root, tokens: 0 }];
  for (let step = pending.pop(); step !== undefined; step = pending.pop()) {
    const { run } = step.node.row;
    let { tokens } = step;
    let taken = 0;
    for (; taken < run.length; taken++) {
      const weight = wanted.get(run[taken] as Label);
      if (weight === undefined) break;
      tokens += weight;
    }
    if (tokens > best.tokens || (tokens === best.tokens && taken > 0 && isFresher(step.node.row, best.node.row))) {
      best = { node: step.node, taken, tokens };
    }
    if (taken === run.length) eachWanted(step.node.children, wanted, (node) => pending.push({ node, tokens }));
  }
  return best.tokens === 0 ? null : best;
}

/**
 * What several requests can use of the served paths: each path as far as one of the requests wants every block on it, least recently used
 * first. A path that is a prefix of another is left out unless it was used later. A search for any of these requests finds the same in the
 * returned paths as in all served ones.
 */
export function usablePaths<N extends TreeNode<N>>(root: N, requests: Iterable<WantedBlocks>): UsablePath[] {
  const reached = new Map<N, number>();
  for (const wanted of requests) {
    const pending = [root];
    for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
      const { run } = node.row;
      const unwanted = run.findIndex((label) => !wanted.has(label));
      const taken = unwanted < 0 ? run.length : unwanted;
      reached.set(node, Math.max(taken, reached.get(node) ?? 0));
      if (taken === run.length) eachWanted(node.children, wanted, (child) => pending.push(child));
    }
  }
  reached.delete(root);
  const covered = new Set<ServedNode | null>();
  for (const { parent, row } of reached.keys()) if (row.lastUsed === parent?.row.lastUsed) covered.add(parent);
  return [...reached]
    .filter(([node]) => !covered.has(node))
    .sort(([a], [b]) => a.row.lastUsed - b.row.lastUsed || a.row.id - b.row.id)
    .map(([node, taken]) => ({
      labels: [...blocksBefore(node), ...node.row.run.slice(0, taken)],
      lastUsed: node.row.lastUsed,
    }));
}

/** The blocks from the anchor to a node's own run. */
function blocksBefore({ parent }: ServedNode): Label[] {
  const runs: (readonly Label[])[] = [];
  for (let node = parent; node !== null; node = node.parent) runs.push(node.row.run);
  return runs.reverse().flat();
}

/**
 * A greedy walk: at each node follows the child that starts with the earliest of the `wanted` blocks (in the set's insertion order), while
 * every block on the way is wanted.
 */
export function walkGreedily(root: ServedNode | undefined, wanted: ReadonlySet<Label>): Omit<PrefixMatch, "tokens"> {
  const labels: Label[] = [];
  const searchPath: number[] = [];
  const left = new Set(wanted);
  let node = root;
  while (node !== undefined) {
    const { children }: ServedNode = node;
    const first = children.size === 0 ? undefined : [...left].find((label) => children.has(label));
    node = first === undefined ? undefined : children.get(first);
    if (node === undefined) break;
    searchPath.push(node.row.position);
    for (const label of node.row.run) {
      if (!left.delete(label)) return { labels, searchPath };
      labels.push(label);
    }
  }
  return { labels, searchPath };
}

/**
 * How many leading blocks of a sequence were served in this order, and the node where exactly those end, if any. `next`: the block that was
 * served after the whole sequence, where that ends within a run.
 */
export function followSequence<N extends TreeNode<N>>(
  root: N | undefined,
  sequence: readonly Label[],
): { readonly held: number; readonly end: N | null; readonly next: Label | null } {
  let node = root;
  let held = 0;
  while (node !== undefined && held < sequence.length) {
    const next: N | undefined = node.children.get(sequence[held] as Label);
    for (const label of next?.row.run ?? []) {
      if (sequence[held] !== label) return { held, end: null, next: held === sequence.length ? label : null };
      held++;
    }
    node = next;
  }
  return { held, end: node ?? null, next: null };
}

const NOTHING_SERVED: ReadonlySet<Label> = new Set();

/** The blocks that were served right after a sequence. */
export function servedAfter<N extends TreeNode<N>>(
  root: N | undefined,
  sequence: readonly Label[],
): Pick<ReadonlySet<Label>, "has"> {
  const { end, next } = followSequence(root, sequence);
  return next === null ? (end?.children ?? NOTHING_SERVED) : new Set([next]);
}

function isFresher(a: ServedNode["row"], b: ServedNode["row"]): boolean {
  return a.lastUsed > b.lastUsed || (a.lastUsed === b.lastUsed && a.id < b.id);
}

/** Calls `visit` with the children that start with a wanted block. No generator: every step of every search comes by here. */
function eachWanted<N extends ServedNode>(
  children: ReadonlyMap<Label, N>,
  wanted: WantedBlocks,
  visit: (child: N) => void,
): void {
  if (children.size <= wanted.size) {
    for (const [first, child] of children) if (wanted.has(first)) visit(child);
    return;
  }
  for (const label of wanted.keys()) {
    const child = children.get(label);
    if (child !== undefined) visit(child);
  }
}

/** Throws if the forest breaks an invariant, or has more than `maxNodes` nodes. */
export function checkForest(forest: PrefixForest, maxNodes: number): void {
  let tokens = 0;
  for (const [id, place] of forest.places) {
    const { row, above, children, continuations } = place;
    const isRoot = row.anchor !== null;
    if (!isRoot && above === null) throw new Error(`node ${id}: an anchor belongs to a root and to nothing else`);
    if (isRoot !== (row.run.length === 0)) throw new Error(`node ${id}: only a root has no blocks`);
    if (row.live === 0 && isLeaf(place)) throw new Error(`node ${id}: dead leaf`);
    if (!isRoot && row.live === 0 && children.size === 1 && continuations.size === 0)
      throw new Error(`node ${id}: unary chain`);
    if ((above?.row.id ?? null) !== row.parent) throw new Error(`node ${id}: linked wrongly`);
    if (above !== null && (above.row.lastUsed < row.lastUsed || above.row.usedAt < row.usedAt))
      throw new Error(`node ${id}: younger than what it needs`);
    for (const [first, child] of children) {
      if (child.row.run[0] !== first || child.above !== place) throw new Error(`node ${child.row.id}: linked wrongly`);
      if (child.row.position >= row.nextPosition) throw new Error(`node ${child.row.id}: position was never given`);
    }
    for (const root of continuations) if (root.above !== place) throw new Error(`node ${root.row.id}: linked wrongly`);
    tokens += ownTokens(place);
  }
  for (const root of forest.anchors.values()) checkListByUse(root);
  if (tokens !== forest.tokens) throw new Error(`${forest.tokens} tokens counted, ${tokens} there`);
  if (forest.places.size > maxNodes) throw new Error(`${forest.places.size} nodes, more than ${maxNodes}`);
}
