import type { Digest, Label, NodeId } from "./ids.js";
import type { IndexChanges, IndexEntry, IndexNode, PrefixMatch, ServedNode } from "./index-node.js";
import { checkListByUse, listByUse, placeBehind, takeOut, type Used } from "./use-order.js";

const NO_MATCH: PrefixMatch = { labels: [], tokens: 0, searchPath: [] };

interface Place extends Used<Place> {
  readonly row: { -readonly [K in keyof IndexNode]: IndexNode[K] };
  /** Null on the root of an anchor, which heads the list of its nodes by last use. */
  parent: Place | null;
  mark: number;
  /** By the first block of their run: the inversion that keeps a search from looking at all children. */
  readonly children: Map<Label, Place>;
}

/**
 * The context index of one scope (ALGORITHMS.md §3 and §4, "prefix-exact"): which block sequences an engine's prefix cache should
 * hold. Changes are made in place and drained as rows; nothing here reads a clock. Holds at most `maxNodes` nodes: past that the
 * least recently used leaves go, a tenth at a time.
 */
export class ContextIndex {
  readonly #places = new Map<NodeId, Place>();
  readonly #anchors = new Map<Digest, Place>();
  readonly #dirty = new Set<NodeId>();
  readonly #removed = new Set<NodeId>();
  #nextId: number;
  #labelBound = 0;

  constructor(
    nodes: readonly IndexNode[],
    nextId: number,
    private readonly maxNodes: number,
  ) {
    this.#nextId = nextId;
    for (const node of nodes) this.#places.set(node.id, placeOf({ ...node }));
    for (const place of this.#places.values()) {
      this.#link(place);
      this.#bound(place.row.run);
    }
    for (const root of this.#anchors.values()) listByUse(root);
  }

  get size(): number {
    return this.#places.size;
  }

  /** The id that the next new node gets; stored, so that ids are never reused. */
  get nextId(): number {
    return this.#nextId;
  }

  /** Whether some request was served behind this anchor and has not been evicted: its beginning should be cached. */
  hasAnchor(anchor: Digest): boolean {
    return this.#anchors.has(anchor);
  }

  /** Whether some request whose blocks began with this sequence was served behind the anchor and has not been evicted. */
  holds(anchor: Digest, sequence: readonly Label[]): boolean {
    return this.hasAnchor(anchor) && this.heldBlocks(anchor, sequence) === sequence.length;
  }

  /**
   * The served path behind `anchor` that holds the most tokens while every block on it is wanted. Exact, not greedy: it visits
   * every path made of wanted blocks only, and of a node's children only those that begin with a wanted block. Ties go to the path
   * used last, then to the older node.
   */
  search(anchor: Digest, wanted: ReadonlyMap<Label, number>): PrefixMatch {
    const root = this.#anchors.get(anchor);
    if (root === undefined) return NO_MATCH;
    let best: { place: Place; taken: number; tokens: number } = { place: root, taken: 0, tokens: 0 };
    const pending: { place: Place; tokens: number }[] = [{ place: root, tokens: 0 }];
    for (let step = pending.pop(); step !== undefined; step = pending.pop()) {
      const { run } = step.place.row;
      let { tokens } = step;
      let taken = 0;
      for (; taken < run.length; taken++) {
        const weight = wanted.get(run[taken] as Label);
        if (weight === undefined) break;
        tokens += weight;
      }
      if (tokens > best.tokens || (tokens === best.tokens && taken > 0 && isFresher(step.place.row, best.place.row))) {
        best = { place: step.place, taken, tokens };
      }
      if (taken === run.length) {
        for (const child of childrenWanted(step.place.children, wanted)) pending.push({ place: child, tokens });
      }
    }
    return best.tokens === 0 ? NO_MATCH : { ...this.#pathTo(best.place, best.taken), tokens: best.tokens };
  }

  /** Greater than every label that it has held. */
  get labelBound(): number {
    return this.#labelBound;
  }

  /**
   * Where the sequences begin that were served behind an anchor; undefined where none was. From there `staler` leads through all
   * their nodes, those used last first and each parent before its children.
   */
  root(anchor: Digest): ServedNode | undefined {
    return this.#anchors.get(anchor);
  }

  /** The blocks from the anchor to a node, with the first `taken` of its own run. */
  pathTo(id: NodeId, taken: number): Omit<PrefixMatch, "tokens"> {
    const place = this.#places.get(id);
    if (place === undefined) throw new Error(`context index: no node ${id}`);
    return this.#pathTo(place, taken);
  }

  /** How many blocks from the front of a sequence were served behind the anchor in this order and not evicted. */
  heldBlocks(anchor: Digest, sequence: readonly Label[]): number {
    let place = this.#anchors.get(anchor);
    let at = 0;
    while (place !== undefined && at < sequence.length) {
      place = place.children.get(sequence[at] as Label);
      for (const label of place?.row.run ?? []) {
        if (sequence[at] !== label) return at;
        at++;
      }
    }
    return at;
  }

  /**
   * A greedy walk from the anchor: at each node on to the child that begins with the earliest of the `wanted` blocks (a set gives
   * them in the order in which they were added), for as long as every block on the way is wanted.
   */
  walk(anchor: Digest, wanted: ReadonlySet<Label>): Omit<PrefixMatch, "tokens"> {
    const labels: Label[] = [];
    const searchPath: number[] = [];
    const left = new Set(wanted);
    let place = this.#anchors.get(anchor);
    while (place !== undefined) {
      const { children }: Place = place;
      const first = children.size === 0 ? undefined : [...left].find((label) => children.has(label));
      place = first === undefined ? undefined : children.get(first);
      if (place === undefined) break;
      searchPath.push(place.row.position);
      for (const label of place.row.run) {
        if (!left.delete(label)) return { labels, searchPath };
        labels.push(label);
      }
    }
    return { labels, searchPath };
  }

  /**
   * Takes in a sequence that is being served behind an anchor at logical time `now`. At most one node is split and one added.
   * Returns the node where the sequence ends, to be kept with the request for eviction.
   */
  insert(anchor: Digest, sequence: readonly Label[], now: number): NodeId {
    let place = this.#anchors.get(anchor) ?? this.#add(null, anchor, [], 0);
    this.#touch(place, now);
    this.#bound(sequence);
    let at = 0;
    while (at < sequence.length) {
      const child = place.children.get(sequence[at] as Label);
      if (child === undefined) {
        place = this.#add(place, null, sequence.slice(at), place.row.nextPosition++);
        at = sequence.length;
      } else {
        const { run } = child.row;
        let same = 0;
        while (same < run.length && at + same < sequence.length && run[same] === sequence[at + same]) same++;
        place = same === run.length ? child : this.#split(child, same);
        at += same;
      }
      this.#touch(place, now);
    }
    place.row.live++;
    this.#trim(place);
    return place.row.id;
  }

  /** One request that ended at this node was evicted from the engine. Prunes upwards; O(height). False: already gone. */
  evict(id: NodeId): boolean {
    const place = this.#places.get(id);
    if (place === undefined || place.row.live === 0) return false;
    place.row.live--;
    this.#dirty.add(id);
    this.#prune(place);
    return true;
  }

  /** These blocks' text is gone: whatever stood behind any of them can never be matched again. */
  forget(labels: ReadonlySet<Label>): void {
    // Pruning comes last: it joins a node with its only child, and what is left must not depend on which branch was cut first.
    const bereft: Place[] = [];
    const pending = [...this.#anchors.values()];
    for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
      const cut = place.row.run.findIndex((label) => labels.has(label));
      if (cut < 0) {
        pending.push(...place.children.values());
        continue;
      }
      for (const child of [...place.children.values()]) this.#removeBranch(child);
      const parent = this.#parentOf(place);
      if (cut > 0 && place.row.live > 0) {
        place.row.run = place.row.run.slice(0, cut);
        this.#dirty.add(place.row.id);
      } else {
        this.#remove(place);
        if (parent !== undefined) bereft.push(parent);
      }
    }
    for (const parent of bereft) if (this.#places.has(parent.row.id)) this.#prune(parent);
  }

  /** Every node with its search path, parents before children, at most `limit`. */
  entries(limit: number): IndexEntry[] {
    const entries: IndexEntry[] = [];
    const pending = [...this.#anchors.values()].reverse();
    for (let place = pending.pop(); place !== undefined && entries.length < limit; place = pending.pop()) {
      const { id, uses, live, lastUsed, run } = place.row;
      const labels = [...this.#labelsAbove(place), ...run];
      entries.push({ id, searchPath: this.#searchPath(place), labels, uses, live, lastUsed });
      pending.push(...[...place.children.values()].sort((a, b) => b.row.position - a.row.position));
    }
    return entries;
  }

  /** Hands over what changed since the last call. */
  drain(): IndexChanges {
    const changes = {
      upserted: [...this.#dirty].flatMap((id) => {
        const place = this.#places.get(id);
        return place === undefined ? [] : [{ ...place.row }];
      }),
      removed: [...this.#removed],
    };
    this.#dirty.clear();
    this.#removed.clear();
    return changes;
  }

  /** Throws where the tree breaks one of its own rules; for tests. */
  check(): void {
    for (const [id, { row, children }] of this.#places) {
      const isRoot = row.parent === null;
      if (isRoot !== (row.anchor !== null))
        throw new Error(`node ${id}: an anchor belongs to a root and to nothing else`);
      if (isRoot !== (row.run.length === 0)) throw new Error(`node ${id}: only a root has no blocks`);
      if (row.live === 0 && children.size === 0) throw new Error(`node ${id}: dead leaf`);
      if (!isRoot && row.live === 0 && children.size === 1) throw new Error(`node ${id}: unary chain`);
      for (const [first, child] of children) {
        if (child.row.run[0] !== first || child.row.parent !== id)
          throw new Error(`node ${child.row.id}: linked wrongly`);
        if (child.row.position >= row.nextPosition) throw new Error(`node ${child.row.id}: position was never given`);
      }
    }
    for (const root of this.#anchors.values()) checkListByUse(root);
    if (this.size > this.maxNodes) throw new Error(`${this.size} nodes, more than ${this.maxNodes}`);
  }

  #link(place: Place): void {
    const { row } = place;
    if (row.anchor !== null) {
      this.#anchors.set(row.anchor, place);
      return;
    }
    const parent = row.parent === null ? undefined : this.#places.get(row.parent);
    if (parent === undefined) throw new Error(`context index: node ${row.id} has no parent`);
    parent.children.set(row.run[0] as Label, place);
    place.parent = parent;
  }

  #bound(labels: readonly Label[]): void {
    for (const label of labels) if (label >= this.#labelBound) this.#labelBound = label + 1;
  }

  #add(parent: Place | null, anchor: Digest | null, run: readonly Label[], position: number): Place {
    const id = this.#nextId++ as NodeId;
    const row = {
      id,
      parent: parent?.row.id ?? null,
      anchor,
      run,
      position,
      nextPosition: 0,
      uses: 0,
      live: 0,
      lastUsed: 0,
    };
    const place = placeOf(row);
    this.#places.set(id, place);
    this.#link(place);
    this.#dirty.add(id);
    return place;
  }

  /** Puts a node between `place` and its parent that holds the first `length` blocks; `place` keeps its id, children and requests. */
  #split(place: Place, length: number): Place {
    const parent = this.#parentOf(place) as Place;
    const { run, position, uses, lastUsed } = place.row;
    const upper = this.#add(parent, null, run.slice(0, length), position);
    Object.assign(upper.row, { nextPosition: 1, uses, lastUsed });
    Object.assign(place.row, { parent: upper.row.id, run: run.slice(length), position: 0 });
    this.#link(place);
    this.#dirty.add(place.row.id);
    return upper;
  }

  #touch(place: Place, now: number): void {
    place.row.uses++;
    place.row.lastUsed = now;
    if (place.parent !== null) placeBehind(place, place.parent);
    this.#dirty.add(place.row.id);
  }

  /** Removes a dead leaf and what dies with it; joins a node that has become a mere step with its only child. */
  #prune(from: Place): void {
    let place: Place | undefined = from;
    while (place !== undefined && place.row.live === 0 && place.children.size === 0) {
      const parent: Place | undefined = this.#parentOf(place);
      this.#remove(place);
      place = parent;
    }
    if (place === undefined || place.row.anchor !== null || place.row.live > 0 || place.children.size !== 1) return;
    const parent = this.#parentOf(place) as Place;
    const [child] = place.children.values();
    if (child === undefined) return;
    const { run, position, id } = place.row;
    Object.assign(child.row, { parent: parent.row.id, run: [...run, ...child.row.run], position });
    this.#link(child);
    takeOut(place);
    this.#places.delete(id);
    this.#forgetRow(id);
    this.#dirty.add(child.row.id);
  }

  #remove(place: Place): void {
    const parent = this.#parentOf(place);
    if (place.row.anchor !== null) this.#anchors.delete(place.row.anchor);
    else parent?.children.delete(place.row.run[0] as Label);
    takeOut(place);
    this.#places.delete(place.row.id);
    this.#forgetRow(place.row.id);
  }

  #removeBranch(top: Place): void {
    const pending = [top];
    for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
      pending.push(...place.children.values());
      this.#remove(place);
    }
  }

  #forgetRow(id: NodeId): void {
    this.#dirty.delete(id);
    this.#removed.add(id);
  }

  /** Keeps the bound, never at the cost of the sequence that is being served (`spared`). */
  #trim(spared: Place): void {
    if (this.size <= this.maxNodes) return;
    const target = Math.floor(this.maxNodes * 0.9);
    while (this.size > target) {
      const leaves = [...this.#places.values()].filter((place) => place.children.size === 0 && place !== spared);
      if (leaves.length === 0) return;
      leaves.sort((a, b) => a.row.lastUsed - b.row.lastUsed || a.row.id - b.row.id);
      for (const leaf of leaves) {
        if (this.size <= target) return;
        leaf.row.live = 0;
        this.#prune(leaf);
      }
    }
  }

  #parentOf(place: Place): Place | undefined {
    return place.parent ?? undefined;
  }

  #labelsAbove(place: Place): Label[] {
    const runs: (readonly Label[])[] = [];
    for (let above = this.#parentOf(place); above !== undefined; above = this.#parentOf(above))
      runs.push(above.row.run);
    return runs.reverse().flat();
  }

  #pathTo(place: Place, taken: number): Omit<PrefixMatch, "tokens"> {
    return {
      labels: [...this.#labelsAbove(place), ...place.row.run.slice(0, taken)],
      searchPath: this.#searchPath(place),
    };
  }

  #searchPath(place: Place): number[] {
    const path: number[] = [];
    for (
      let step: Place | undefined = place;
      step !== undefined && step.row.anchor === null;
      step = this.#parentOf(step)
    ) {
      path.push(step.row.position);
    }
    return path.reverse();
  }
}

function placeOf(row: Place["row"]): Place {
  return { row, parent: null, children: new Map(), mark: 0, fresher: null, staler: null };
}

function isFresher(a: IndexNode, b: IndexNode): boolean {
  return a.lastUsed > b.lastUsed || (a.lastUsed === b.lastUsed && a.id < b.id);
}

function* childrenWanted(children: ReadonlyMap<Label, Place>, wanted: ReadonlyMap<Label, number>): Iterable<Place> {
  if (children.size <= wanted.size) {
    for (const [first, child] of children) if (wanted.has(first)) yield child;
    return;
  }
  for (const label of wanted.keys()) {
    const child = children.get(label);
    if (child !== undefined) yield child;
  }
}
