import type { EvictedPath } from "../cache/context-index.js";
import { alignTo, blocksKey, intersectionOf } from "../ordering/ordering.js";
import { ChangedRows, type RowChanges } from "../text/collections.js";
import type { Label, NodeId } from "../text/ids.js";

/** A stored node of the cluster tree. A leaf is one known context; an inner node has its contexts' common blocks at creation. */
export interface ClusterNode {
  readonly id: NodeId;
  /** Null on the root only. */
  readonly parent: NodeId | null;
  /** Distinct blocks in prompt order; empty on the root only. */
  readonly blocks: readonly Label[];
  /** Child position under the parent, never reused. Search paths consist of these. */
  readonly position: number;
  readonly nextPosition: number;
  /** Context distance (eq. 1) of the two merged nodes; 0 on leaves and on the root. */
  readonly distance: number;
  /** Logical time of the last use; 0 on inner nodes. */
  readonly lastUsed: number;
}

export interface ClusterMatch {
  readonly blocks: readonly Label[];
  readonly searchPath: readonly number[];
  /** From the context to the node; 1 for no match. */
  readonly distance: number;
}

/** Weight of the position term of eq. 1; the paper's range is 0.001 to 0.01. */
export const ALPHA = 0.001;

/** Position of each block in a context, from 0. */
export type Positions = ReadonlyMap<Label, number>;

export function positionsOf(context: readonly Label[]): Positions {
  const positions = new Map<Label, number>();
  for (const [position, label] of context.entries()) positions.set(label, position);
  if (positions.size !== context.length) throw new Error("a context lists a block twice");
  return positions;
}

/**
 * Context distance (ContextPilot eq. 1): the share of the longer context's blocks that are not shared, plus {@link ALPHA} times the mean shift of shared
 * ones. 1 if none is shared; large shifts can exceed 1. O(|a| + |b|).
 */
export function contextDistance(a: readonly Label[], b: readonly Label[]): number {
  return distanceWhereShared(positionsOf(a), b) ?? 1;
}

/** {@link contextDistance} from known positions; null if no block is shared. O(|b|). */
function distanceWhereShared(a: Positions, b: readonly Label[]): number | null {
  let shared = 0;
  let shift = 0;
  for (let position = 0; position < b.length; position++) {
    const other = a.get(b[position] as Label);
    if (other === undefined) continue;
    shared++;
    shift += Math.abs(other - position);
  }
  return shared === 0 ? null : 1 - shared / Math.max(a.size, b.length) + (ALPHA * shift) / shared;
}

/** Maximum length of a search path: a search stops one level above it. */
export const MAX_HEIGHT = 64;

/**
 * ContextPilot's context index (docs/internals/algorithms.md, "ContextPilot's algorithms"): contexts clustered by overlap. Mutable; changes are
 * drained as rows. Beyond `maxNodes` (3 or more) it evicts least recently used leaves, a tenth of the nodes at a time.
 */
export class ClusterTree {
  readonly #places = new Map<NodeId, ClusterPlace>();
  readonly #changes = new ChangedRows<NodeId>();
  #nextId = 1;
  /** By {@link blocksKey}: identical contexts share one leaf, whichever node a search matches. */
  readonly #leafOfBlocks = new Map<string, ClusterPlace>();
  #root: ClusterPlace | null = null;

  /** Takes rows in any order. Throws if a row's parent is missing. */
  constructor(
    nodes: readonly ClusterNode[],
    private readonly maxNodes: number,
  ) {
    this.#load(nodes);
  }

  get size(): number {
    return this.#places.size;
  }

  /** Matches a context (Alg. 1): descends to the nearest child that shares a block, until a leaf, or none shares one, or all are equally near. */
  search(context: readonly Label[]): ClusterMatch {
    const { place, ...found } = this.#find(context);
    return { blocks: place?.row.blocks ?? [], ...found };
  }

  /** Adds a context at logical time `now`, ordered by its match (Alg. 2): below a matching inner node, or beside a matching leaf. */
  insert(context: readonly Label[], now: number): void {
    if (context.length === 0) return;
    const leaf = this.#leafOfBlocks.get(blocksKey(context)) ?? this.#attach(context);
    leaf.row.lastUsed = Math.max(leaf.row.lastUsed, now);
    this.#changes.written(leaf.row.id);
    this.#trim(leaf);
  }

  /** The leaf of a known context: its blocks in the tree's order, and its path for scheduling (Alg. 5). */
  leafOf(context: readonly Label[]): Pick<ClusterMatch, "blocks" | "searchPath"> | null {
    const leaf = this.#leafOfBlocks.get(blocksKey(context));
    return leaf === undefined ? null : { blocks: leaf.row.blocks, searchPath: this.#searchPathOf(leaf) };
  }

  /** Removes the contexts that ended on a path beyond the blocks that are still held. */
  evicted({ labels, held }: EvictedPath): void {
    for (let length = held + 1; length <= labels.length; length++) {
      const leaf = this.#leafOfBlocks.get(blocksKey(labels.slice(0, length)));
      if (leaf !== undefined) this.#removeLeaf(leaf);
    }
  }

  /** Takes the nodes of a tree that a batch's planner made of this one or of none (Alg. 4), with what this one has learned meanwhile. */
  replace(planned: readonly ClusterNode[], now: number): void {
    const before = this.#leastRecentlyUsed().map(({ row }) => row);
    for (const id of this.#places.keys()) this.#changes.removed(id);
    this.#places.clear();
    this.#leafOfBlocks.clear();
    this.#root = null;
    const first = this.#nextId;
    const idOf = new Map(planned.map(({ id }, at) => [id, (first + at) as NodeId]));
    const parentOf = ({ parent }: ClusterNode) => (parent === null ? null : (idOf.get(parent) ?? null));
    this.#load(planned.map((node) => ({ ...node, id: idOf.get(node.id) as NodeId, parent: parentOf(node) })));
    for (const id of idOf.values()) this.#changes.written(id);
    for (const { row } of this.#leafOfBlocks.values()) row.lastUsed = now;
    for (const { blocks, lastUsed } of before) this.insert(blocks, lastUsed);
    this.#trim(null);
  }

  /** Removes leaves that contain forgotten blocks, and the blocks from inner nodes. O(nodes × blocks). */
  forget(labels: ReadonlySet<Label>): void {
    const naming = [...this.#places.values()].filter(({ row }) => row.blocks.some((label) => labels.has(label)));
    for (const place of naming) if (isLeaf(place)) this.#removeLeaf(place);
    // A leaf shares a block with every ancestor, so an inner node that keeps a leaf keeps a block.
    for (const place of naming) {
      if (!this.#places.has(place.row.id)) continue;
      place.row.blocks = place.row.blocks.filter((label) => !labels.has(label));
      this.#changes.written(place.row.id);
    }
  }

  drain(): RowChanges<NodeId, ClusterNode> {
    return this.#changes.drain((id) => {
      const place = this.#places.get(id);
      return place && { ...place.row };
    });
  }

  /** As stored, by id; later changes do not reach them. */
  stored(): ClusterNode[] {
    return Array.from(this.#places.values(), ({ row }) => ({ ...row })).sort((a, b) => a.id - b.id);
  }

  /** Throws if an invariant is broken. For tests and stored rows. */
  check(): void {
    let leaves = 0;
    for (const place of this.#places.values()) {
      const { row, children } = place;
      const { id } = row;
      const isRoot = place === this.#root;
      const isEnd = isLeaf(place) && !isRoot;
      if (isRoot !== (row.parent === null)) throw new Error(`node ${id}: only the root has no parent`);
      if (isRoot !== (row.blocks.length === 0)) throw new Error(`node ${id}: only the root has no blocks`);
      if (new Set(row.blocks).size !== row.blocks.length) throw new Error(`node ${id}: a block twice`);
      if (isRoot && isLeaf(place)) throw new Error(`node ${id}: a root without children`);
      if (!isRoot && children.length === 1) throw new Error(`node ${id}: unary chain`);
      if (isEnd && this.#leafOfBlocks.get(blocksKey(row.blocks)) !== place)
        throw new Error(`node ${id}: a second leaf`);
      for (let above = place.parent; isEnd && above !== this.#root && above !== null; above = above.parent)
        if (intersectionOf(above.row.blocks, row.blocks).length === 0) throw new Error(`node ${id}: a stranger here`);
      for (const child of children) {
        if (child.row.parent !== id) throw new Error(`node ${child.row.id}: linked wrongly`);
        if (child.row.position >= row.nextPosition) throw new Error(`node ${child.row.id}: position was never given`);
      }
      if (new Set(children.map((child) => child.row.position)).size < children.length)
        throw new Error(`node ${id}: a position given twice`);
      leaves += isEnd ? 1 : 0;
    }
    if (leaves !== this.#leafOfBlocks.size) throw new Error("a context without a leaf");
    if (this.size > this.maxNodes) throw new Error(`${this.size} nodes, more than ${this.maxNodes}`);
  }

  /** `place`: the root for no match; null in an empty tree. */
  #find(context: readonly Label[]) {
    const positions = positionsOf(context);
    const searchPath: number[] = [];
    let place = this.#root;
    let distance = 1;
    while (place !== null && searchPath.length < MAX_HEIGHT - 1) {
      const nearest = nearestChild(place, positions);
      if (nearest === null) break;
      place = nearest.child;
      distance = nearest.distance;
      searchPath.push(place.row.position);
    }
    return { place, searchPath, distance };
  }

  #attach(context: readonly Label[]): ClusterPlace {
    const match = this.#find(context);
    this.#root ??= this.#add(null, { blocks: [], position: 0, distance: 0 });
    const place = match.place ?? this.#root;
    const blocks = alignTo(place.row.blocks, context);
    const isEnd = place !== this.#root && isLeaf(place);
    const parent = isEnd ? this.#split(place, blocks, match.distance) : place;
    const leaf = this.#add(parent, { blocks, position: parent.row.nextPosition++, distance: 0 });
    this.#leafOfBlocks.set(blocksKey(blocks), leaf);
    this.#changes.written(parent.row.id);
    return leaf;
  }

  /** Replaces a leaf by its intersection with a context, with the leaf as a child. */
  #split(leaf: ClusterPlace, context: readonly Label[], distance: number): ClusterPlace {
    const parent = leaf.parent as ClusterPlace;
    removeChild(parent, leaf);
    const blocks = intersectionOf(leaf.row.blocks, context);
    const upper = this.#add(parent, { blocks, position: leaf.row.position, distance });
    upper.row.nextPosition = 1;
    this.#hang(leaf, upper, 0);
    return upper;
  }

  #load(nodes: readonly ClusterNode[]): void {
    for (const node of nodes) {
      this.#places.set(node.id, { row: { ...node }, parent: null, children: [] });
      this.#nextId = Math.max(this.#nextId, node.id + 1);
    }
    for (const place of this.#places.values()) {
      const { id, parent } = place.row;
      if (parent === null) {
        this.#root = place;
        continue;
      }
      place.parent = this.#places.get(parent) ?? null;
      if (place.parent === null) throw new Error(`cluster tree: node ${id} has no parent`);
      addChild(place.parent, place);
    }
    for (const place of this.#places.values())
      if (isLeaf(place) && place !== this.#root) this.#leafOfBlocks.set(blocksKey(place.row.blocks), place);
  }

  /** A last sibling replaces the parent; the root goes with its last child. */
  #removeLeaf(leaf: ClusterPlace): void {
    const parent = leaf.parent as ClusterPlace;
    this.#leafOfBlocks.delete(blocksKey(leaf.row.blocks));
    this.#drop(leaf);
    const [sibling] = parent.children;
    if (parent === this.#root) {
      if (sibling !== undefined) return;
      this.#root = null;
      this.#drop(parent);
    } else if (sibling !== undefined && parent.children.length === 1) {
      const above = parent.parent as ClusterPlace;
      this.#drop(parent);
      this.#hang(sibling, above, parent.row.position);
    }
  }

  /** Never evicts `spared`, the leaf that is being served. */
  #trim(spared: ClusterPlace | null): void {
    if (this.size <= this.maxNodes) return;
    const target = Math.floor(this.maxNodes * 0.9);
    for (const leaf of this.#leastRecentlyUsed()) {
      if (this.size <= target) return;
      if (leaf !== spared) this.#removeLeaf(leaf);
    }
  }

  #leastRecentlyUsed(): ClusterPlace[] {
    return [...this.#leafOfBlocks.values()].sort((a, b) => a.row.lastUsed - b.row.lastUsed || a.row.id - b.row.id);
  }

  #searchPathOf(place: ClusterPlace): number[] {
    const path: number[] = [];
    for (let step = place; step.parent !== null; step = step.parent) path.push(step.row.position);
    return path.reverse();
  }

  /** As the root if `parent` is null. */
  #add(parent: ClusterPlace | null, node: Pick<ClusterNode, "blocks" | "position" | "distance">): ClusterPlace {
    const id = this.#nextId++ as NodeId;
    const { blocks, position, distance } = node;
    const at = { id, parent: parent?.row.id ?? null, blocks, position, nextPosition: 0, distance };
    const place: ClusterPlace = { row: { ...at, lastUsed: 0 }, parent, children: [] };
    this.#places.set(id, place);
    if (parent !== null) addChild(parent, place);
    this.#changes.written(id);
    return place;
  }

  #hang(place: ClusterPlace, parent: ClusterPlace, position: number): void {
    Object.assign(place.row, { parent: parent.row.id, position });
    place.parent = parent;
    addChild(parent, place);
    this.#changes.written(place.row.id);
  }

  #drop(place: ClusterPlace): void {
    if (place.parent !== null) removeChild(place.parent, place);
    this.#places.delete(place.row.id);
    this.#changes.removed(place.row.id);
  }
}

interface ClusterPlace {
  readonly row: { -readonly [K in keyof ClusterNode]: ClusterNode[K] };
  /** Null for the root only. */
  parent: ClusterPlace | null;
  /** By position. */
  readonly children: ClusterPlace[];
}

/** The nearest child that shares a block; of equally near ones one of several contexts, then the older. Null: none, or all are alike. */
function nearestChild({ children }: ClusterPlace, context: Positions) {
  let child: ClusterPlace | null = null;
  let least = Number.POSITIVE_INFINITY;
  let areAlike = children.length > 1;
  for (const other of children) {
    const distance = distanceWhereShared(context, other.row.blocks);
    if (distance === null) {
      areAlike = false;
      continue;
    }
    const isOther = child !== null && isLeaf(other) !== isLeaf(child);
    if (child !== null && (distance !== least || isOther)) areAlike = false;
    if (distance < least || (distance === least && isOther && !isLeaf(other))) {
      child = other;
      least = distance;
    }
  }
  return child === null || areAlike ? null : { child, distance: least };
}

function isLeaf(place: ClusterPlace): boolean {
  return place.children.length === 0;
}

function addChild({ children }: ClusterPlace, child: ClusterPlace): void {
  const before = children.findLastIndex(({ row }) => row.position < child.row.position);
  children.splice(before + 1, 0, child);
}

function removeChild({ children }: ClusterPlace, child: ClusterPlace): void {
  children.splice(children.indexOf(child), 1);
}
