/* context-index: what an engine should hold. Enters: served prompts, evictions, reports. Leaves: cached sequences, and nodes to search. */

import { append, ChangedRows, type RowChanges } from "../text/collections.js";
import type { Digest, Label, NodeId } from "../text/ids.js";
import { followSequence, type IndexNode, type ServedNode, TreeNode, withExtensions } from "./index-node.js";

/** A served prompt besides its blocks. Tokens are estimates of the configured counter. */
export interface ServedPrompt {
  readonly at: number;
  /** The end of the earlier turn whose whole prompt is a prefix of this one. */
  readonly follows: NodeId | null;
  /** Includes the section's opening. */
  readonly tokensBefore: number;
  readonly tokensBehind: number;
}

const NOTHING_ELSE: ServedPrompt = { at: 0, follows: null, tokensBefore: 0, tokensBehind: 0 };

/** A node where prompts that should be cached end. `tokens`: of the whole prompt that ended here last. */
export interface HeldEnd {
  readonly id: NodeId;
  readonly live: number;
  readonly lastUsed: number;
  readonly tokens: number;
}

/** A served sequence of which the engine holds only the first `held` blocks now. */
export interface EvictedPath {
  readonly labels: readonly Label[];
  readonly held: number;
}

/** An index that loses what this one does, whatever reported the eviction. */
export interface EvictionFollower {
  readonly isEmpty: boolean;
  evicted(path: EvictedPath): void;
}

export interface PassedAnchor {
  readonly anchor: Digest;
  readonly labels: readonly Label[];
}

/**
 * The context index of one scope (docs/internals/algorithms.md, "The context index"). Beyond `maxNodes` it evicts least recently used leaves, a
 * tenth of the nodes at a time. A node is never older than its descendants: loading derives its time from theirs, so that a long conversation does
 * not rewrite all its rows.
 */
export class ContextIndex {
  /** LRU order; within one request, descendants before ancestors. Each pass evicts the oldest first. */
  readonly #nodes = new Map<NodeId, TreeNode>();
  readonly #roots = new Map<Digest, TreeNode>();
  readonly #changes = new ChangedRows<NodeId>();
  #nextId: number;

  /** @param blockTokens default: 0 for every block */
  constructor(
    rows: readonly IndexNode[],
    nextId: number,
    private readonly maxNodes: number,
    private readonly blockTokens: (label: Label) => number = () => 0,
    private readonly follower: EvictionFollower | null = null,
  ) {
    this.#nextId = nextId;
    const nodes = new Map(rows.map((row) => [row.id, new TreeNode({ ...row }, null)]));
    for (const node of nodes.values()) {
      const { id, parent, anchor } = node.row;
      if (parent !== null) {
        node.above = nodes.get(parent) ?? null;
        if (node.above === null) throw new Error(`context index: node ${id} has no parent`);
      }
      if (anchor !== null) this.#roots.set(anchor, node);
    }
    for (const node of nodes.values()) node.link();
    const loaded = withExtensions(this.#tops()).reverse();
    if (loaded.length !== nodes.size) throw new Error("context index: nodes go on from each other in a circle");
    for (const { row, above } of loaded) {
      if (above === null) continue;
      above.row.lastUsed = Math.max(above.row.lastUsed, row.lastUsed);
      above.row.usedAt = Math.max(above.row.usedAt, row.usedAt);
    }
    for (const node of loaded.sort((a, b) => a.row.lastUsed - b.row.lastUsed)) {
      this.#nodes.set(node.row.id, node);
      if (node.parent !== null) node.listAfter(node.toRoot().at(-1) as TreeNode);
    }
  }

  get size(): number {
    return this.#nodes.size;
  }

  get nextId(): number {
    return this.#nextId;
  }

  hasAnchor(anchor: Digest): boolean {
    return this.#roots.has(anchor);
  }

  /** The root of the sequences served after an anchor. From there `staler` leads through all their nodes, parents before children. */
  root(anchor: Digest): ServedNode | undefined {
    return this.#roots.get(anchor);
  }

  heldBlocks(anchor: Digest, sequence: readonly Label[]): number {
    return followSequence(this.root(anchor), sequence).held;
  }

  /** The node where exactly this sequence ends. */
  endOf(anchor: Digest, sequence: readonly Label[]): NodeId | null {
    return followSequence(this.root(anchor), sequence).end?.row.id ?? null;
  }

  /** The ends of the prompts that should be cached, least recently used first. */
  *ends(): Generator<HeldEnd, void, undefined> {
    for (const node of this.#nodes.values()) {
      const { id, anchor, live, lastUsed, tokens } = node.row;
      if (live > 0) yield { id, live, lastUsed, tokens: this.#depthOf(node) + (anchor === null ? tokens : 0) };
    }
  }

  heldAt(id: NodeId): number {
    return this.#nodes.get(id)?.row.live ?? 0;
  }

  /** The anchors of a prompt that ends at a node, each with the blocks after it, last anchor first. */
  *wayTo(id: NodeId): Generator<PassedAnchor, void, undefined> {
    for (let node = this.#nodes.get(id) ?? null; node !== null; ) {
      const root = node.toRoot().at(-1) as TreeNode;
      yield { anchor: root.row.anchor as Digest, labels: node.labels };
      node = root.above;
    }
  }

  /** Adds a sequence served at logical time `now`; returns the node where it ends. Splits at most one node and adds at most two. */
  insert(anchor: Digest, sequence: readonly Label[], now: number, prompt: ServedPrompt = NOTHING_ELSE): NodeId {
    const follows = prompt.follows === null ? undefined : this.#nodes.get(prompt.follows);
    let node = this.#roots.get(anchor) ?? this.#add(follows ?? null, anchor, [], 0, prompt.tokensBefore);
    if (node.row.tokens === 0 && prompt.tokensBefore !== 0) {
      this.#update(node, { tokens: prompt.tokensBefore });
    }
    for (let at = 0; at < sequence.length; ) {
      const child = node.children.get(sequence[at] as Label);
      if (child === undefined) {
        node = this.#add(node, null, sequence.slice(at), node.row.nextPosition++);
        break;
      }
      const { run } = child.row;
      let same = 0;
      while (same < run.length && at + same < sequence.length && run[same] === sequence[at + same]) same++;
      node = same === run.length ? child : this.#split(child, same);
      at += same;
    }
    const { row } = node;
    this.#update(node, { live: row.live + 1, tokens: row.anchor === null ? prompt.tokensBehind : row.tokens });
    this.#use(node, now, prompt.at);
    this.#trim(node);
    return row.id;
  }

  /** Evicts one request that ended at this node. Prunes upwards; O(height). False: already gone. */
  evict(id: NodeId): boolean {
    const node = this.#nodes.get(id);
    if (node === undefined || node.row.live === 0) return false;
    const { live, anchor, tokens } = node.row;
    this.#update(node, { live: live - 1, tokens: live === 1 && anchor === null ? 0 : tokens });
    this.#prune(node);
    return true;
  }

  /** Removes forgotten blocks and everything after them, which can never match again. */
  forget(labels: ReadonlySet<Label>): void {
    const parents: TreeNode[] = [];
    const pending = [...this.#tops()];
    for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
      const { run, live } = node.row;
      const cut = run.findIndex((label) => labels.has(label));
      if (cut < 0) {
        append(pending, node.extensions());
        continue;
      }
      if (cut > 0 && live > 0) this.#shorten(node, cut);
      else {
        this.#removeBranch(node);
        if (node.above !== null) parents.push(node.above);
      }
    }
    this.#pruneAll(parents);
  }

  dropUnusedSince(time: number): void {
    for (const node of this.#nodes.values()) if (node.row.usedAt <= time && node.isLeaf) this.#cut(node);
  }

  /**
   * The request that ended here at logical time `clock` hit only `tokens` tokens. Removes the rest of its path and, by LRU, everything used no
   * later; without any hit, everything used before `clock`. What was used after `settled` (milliseconds) stays: it may not have been written yet.
   */
  miss(id: NodeId, clock: number, tokens: number, settled: number): void {
    const end = this.#nodes.get(id);
    if (end === undefined) return;
    const parents: TreeNode[] = [];
    let gone = tokens === 0 ? clock - 1 : 0;
    let served: TreeNode | null = null;
    for (let node: TreeNode | null = end; node !== null && this.#depthOf(node) > tokens; node = node.above) {
      const pending = [...node.extensions()].filter((next) => next !== served);
      for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
        if (next.row.lastUsed >= clock || next.row.usedAt > settled) append(pending, next.extensions());
        else {
          gone = Math.max(gone, next.row.lastUsed);
          this.#removeBranch(next);
          if (next.above !== null) parents.push(next.above);
        }
      }
      served = node;
    }
    this.#pruneAll(parents);
    for (const node of this.#nodes.values()) {
      if (node.row.lastUsed > gone) return;
      if (node.isLeaf && node.row.usedAt <= settled) this.#cut(node);
    }
  }

  /**
   * The engine holds only the first `tokens` tokens of the prompt that ended here. Removes the rest, for every prompt that shares it. Gives the node
   * where what is left ends; null: nothing was lost, or nothing is left.
   */
  lose(id: NodeId, tokens: number): NodeId | null {
    let lost = this.#nodes.get(id);
    if (lost === undefined || this.#depthOf(lost) <= tokens) return null;
    while (lost.above !== null && this.#depthOf(lost.above) > tokens) lost = lost.above;
    const { above, row } = lost;
    let depth = this.#depthOf(lost) - this.ownTokens(row);
    // -1 of a root, which has no blocks.
    const kept = row.run.findIndex((label) => {
      depth += this.blockTokens(label);
      return depth > tokens;
    });
    const last = kept > 0 ? lost : above;
    if (kept > 0) this.#shorten(lost, kept);
    else this.#removeBranch(lost);
    if (last !== null) this.#update(last, { live: Math.max(1, last.row.live) });
    return last?.row.id ?? null;
  }

  /** The engine still held at time `at` (milliseconds) what this request used at `clock`. No effect if a later request used the node. */
  refresh(id: NodeId, clock: number, at: number): void {
    const end = this.#nodes.get(id);
    if (end === undefined || end.row.lastUsed !== clock) return;
    for (const { row } of end.toRoot()) if (row.usedAt < at) this.#changes.written(row.id);
    for (let node: TreeNode | null = end; node !== null; node = node.above)
      node.row.usedAt = Math.max(node.row.usedAt, at);
  }

  drain(): RowChanges<NodeId, IndexNode> {
    return this.#changes.drain((id) => {
      const node = this.#nodes.get(id);
      return node && { ...node.row };
    });
  }

  /** Tokens that a node adds to its parent's prefix: its blocks, or the prompt before an anchor's root. */
  ownTokens({ anchor, run, tokens }: IndexNode): number {
    return anchor === null ? run.reduce((sum, label) => sum + this.blockTokens(label), 0) : tokens;
  }

  /** All nodes as stored, by id; later changes do not reach them. */
  stored(): IndexNode[] {
    return Array.from(this.#nodes.values(), ({ row }) => ({ ...row })).sort((a, b) => a.id - b.id);
  }

  /** Throws if stored rows break a rule of the tree. */
  check(): void {
    if (this.size > this.maxNodes) throw new Error(`${this.size} nodes, more than ${this.maxNodes}`);
    for (const { row, parent, isLeaf, children, continuations } of this.#nodes.values()) {
      const { id, anchor, run, live } = row;
      if (anchor === null && parent === null)
        throw new Error(`node ${id}: an anchor belongs to a root and to nothing else`);
      if ((anchor !== null) !== (run.length === 0)) throw new Error(`node ${id}: only a root has no blocks`);
      if (live === 0 && isLeaf) throw new Error(`node ${id}: dead leaf`);
      if (anchor === null && live === 0 && children.size === 1 && continuations.size === 0)
        throw new Error(`node ${id}: unary chain`);
      if (parent !== null && row.position >= parent.row.nextPosition)
        throw new Error(`node ${id}: position was never given`);
    }
  }

  /** Tokens from the start of the prompt to the end of the node's blocks. */
  #depthOf(node: TreeNode): number {
    return node.toRoot().reduce((tokens, { row }) => tokens + this.ownTokens(row), 0);
  }

  /** Anchors' roots that extend no other prompt. */
  *#tops(): Generator<TreeNode, void, undefined> {
    for (const root of this.#roots.values()) if (root.above === null) yield root;
  }

  #update(node: TreeNode, row: Partial<IndexNode>): void {
    Object.assign(node.row, row);
    this.#changes.written(node.row.id);
  }

  #add(above: TreeNode | null, anchor: Digest | null, run: readonly Label[], position: number, tokens = 0): TreeNode {
    const id = this.#nextId++ as NodeId;
    const unused = { nextPosition: 0, uses: 0, live: 0, lastUsed: 0, usedAt: 0 };
    const node = new TreeNode({ id, parent: above?.row.id ?? null, anchor, run, position, tokens, ...unused }, above);
    this.#nodes.set(id, node);
    if (anchor !== null) this.#roots.set(anchor, node);
    node.link();
    this.#changes.written(id);
    return node;
  }

  #split(node: TreeNode, length: number): TreeNode {
    const { run, position, uses, lastUsed, usedAt } = node.row;
    const upper = this.#add(node.above, null, run.slice(0, length), position);
    Object.assign(upper.row, { nextPosition: 1, uses, lastUsed, usedAt });
    node.above = upper;
    this.#update(node, { parent: upper.row.id, position: 0, run: run.slice(length) });
    node.link();
    return upper;
  }

  /** Marks `end` and its ancestors as used, at logical time `clock` and `at` in milliseconds. */
  #use(end: TreeNode, clock: number, at: number): void {
    for (let node: TreeNode | null = end; node !== null; ) {
      const path = node.toRoot();
      const root = path.at(-1) as TreeNode;
      for (const each of path) {
        const { row } = each;
        // From the end up, so that the list is in order from the root down.
        if (each !== root) each.listAfter(root);
        row.lastUsed = clock;
        row.usedAt = Math.max(row.usedAt, at);
        this.#nodes.delete(row.id);
        this.#nodes.set(row.id, each);
        if (node === end) {
          row.uses++;
          this.#changes.written(row.id);
        }
      }
      node = root.above;
    }
  }

  #cut(leaf: TreeNode): void {
    leaf.row.live = 0;
    this.#prune(leaf);
  }

  /** Removes a dead leaf and ancestors that die with it. Joins a node that has one child and no own requests to that child. */
  #prune(from: TreeNode): void {
    let node: TreeNode | null = from;
    while (node !== null && node.row.live === 0 && node.isLeaf) {
      const { above }: TreeNode = node;
      this.#remove(node);
      node = above;
    }
    if (node === null || node.row.anchor !== null || node.row.live > 0 || node.continuations.size > 0) return;
    const [child] = node.children.values();
    if (node.children.size === 1 && child !== undefined) this.#join(node, child);
  }

  /** Runs after all cuts, so that the result does not depend on which branch was cut first. */
  #pruneAll(parents: readonly TreeNode[]): void {
    for (const node of parents) if (this.#nodes.get(node.row.id) === node) this.#prune(node);
  }

  #join(node: TreeNode, child: TreeNode): void {
    const { run, position, parent } = node.row;
    child.above = node.above;
    this.#update(child, { parent, position, run: [...run, ...child.row.run] });
    child.link();
    this.#drop(node);
  }

  /** Removes all but a node's first blocks. */
  #shorten(node: TreeNode, blocks: number): void {
    const { labels } = node;
    const { run } = node.row;
    for (const next of [...node.extensions()]) this.#removeBranch(next);
    this.follower?.evicted({ labels, held: labels.length - run.length + blocks });
    this.#update(node, { run: run.slice(0, blocks), tokens: 0 });
  }

  #removeBranch(top: TreeNode): void {
    for (const node of withExtensions([top]).reverse()) this.#remove(node);
  }

  #remove(node: TreeNode): void {
    const { row, above, parent } = node;
    if (parent !== null && this.follower?.isEmpty === false)
      this.follower.evicted({ labels: node.labels, held: parent.labels.length });
    if (row.anchor === null) above?.children.delete(row.run[0] as Label);
    else {
      this.#roots.delete(row.anchor);
      above?.continuations.delete(node);
    }
    this.#drop(node);
  }

  /** Drops a node that nothing extends. Its row carried its parent's last use, so the parent's row is written. */
  #drop(node: TreeNode): void {
    const { row, above } = node;
    node.unlist();
    this.#nodes.delete(row.id);
    this.#changes.removed(row.id);
    if (above !== null) this.#changes.written(above.row.id);
  }

  /** Beyond `maxNodes`, evicts a tenth of the nodes, but never `spared`, which is being served. */
  #trim(spared: TreeNode): void {
    if (this.size <= this.maxNodes) return;
    const target = Math.floor(this.maxNodes * 0.9);
    for (const node of this.#nodes.values()) {
      if (this.size <= target) return;
      if (node.isLeaf && node !== spared) this.#cut(node);
    }
    if (this.size > target) this.#dropEarlierTurns(spared.toRoot().at(-1) as TreeNode);
  }

  /** Drops all turns before this one, of a prompt that alone exceeds the bound. Its next prompt is found by the newest turn. */
  #dropEarlierTurns(newest: TreeNode): void {
    let top = newest.above;
    if (top === null) return;
    top.continuations.delete(newest);
    newest.above = null;
    newest.row.parent = null;
    this.#changes.written(newest.row.id);
    while (top.above !== null) top = top.above;
    this.#removeBranch(top);
  }
}
