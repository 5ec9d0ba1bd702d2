import type { Digest, Label, NodeId } from "../text/ids.js";
import {
  addChild,
  addContinuation,
  branchOf,
  type IndexChanges,
  type IndexNode,
  inOrderOfUse,
  isLeaf,
  listByUse,
  NO_CHILDREN,
  NO_CONTINUATIONS,
  ownTokens,
  type Place,
  placeBehind,
  removeChild,
  removeContinuation,
  takeOut,
} from "./index-node.js";

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
  readonly #dirty = new Set<NodeId>();
  readonly #removed = new Set<NodeId>();
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
    this.#dirty.add(id);
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
    this.#dirty.add(root.row.id);
    // Affects the weight of every prompt that extends this one.
    this.#countTokens();
  }

  /** Sets the tokens after a sequence that ends at this node. */
  setTokensAfter(place: Place, tokens: number): void {
    if (place.row.tokens === tokens) return;
    this.#reweigh(place, () => {
      place.row.tokens = tokens;
    });
    this.#dirty.add(place.row.id);
  }

  /** Adds or removes a request that ends at the node. */
  countLive(place: Place, by: 1 | -1): void {
    place.row.live += by;
    this.#dirty.add(place.row.id);
  }

  /** Records that a request that ended at `end` used it and its ancestors, at logical time `clock` and `at` in milliseconds. */
  use(end: Place, clock: number, at: number): void {
    let isOwn = true;
    let behindAnchor: Place[] = [];
    for (let place: Place | null = end; place !== null; place = place.above) {
      const { row } = place;
      if (row.anchor === null) behindAnchor.push(place);
      else {
        let fresher = place;
        for (const node of behindAnchor.reverse()) {
          placeBehind(node, fresher);
          fresher = node;
        }
        behindAnchor = [];
      }
      row.lastUsed = clock;
      row.usedAt = Math.max(row.usedAt, at);
      this.places.delete(row.id);
      this.places.set(row.id, place);
      if (isOwn) {
        row.uses++;
        this.#dirty.add(row.id);
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
        if (isOwn) this.#dirty.add(row.id);
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
    this.#dirty.add(root.row.id).add(above.row.id);
  }

  drain(): IndexChanges {
    const changes = {
      upserted: [...this.#dirty].flatMap((id) => {
        const place = this.places.get(id);
        return place === undefined ? [] : [{ ...place.row }];
      }),
      removed: [...this.#removed],
    };
    this.#dirty.clear();
    this.#removed.clear();
    return changes;
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
    this.#dirty.add(place.row.id);
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
    this.#dirty.delete(id);
    this.#removed.add(id);
    if (above !== null) this.#dirty.add(above.row.id);
  }

  #countTokens(): void {
    this.#tokens = 0;
    for (const place of this.places.values()) this.#tokens += ownTokens(place);
  }
}
