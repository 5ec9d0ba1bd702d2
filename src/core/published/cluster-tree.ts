import { alignTo, blocksKey, intersectionOf } from "../ordering/alignment.js";
import type { Label, NodeId, TurnId } from "../text/ids.js";
import { append } from "../text/lists.js";
import type { ClusterPlace } from "./cluster-children.js";
import type { ClusterChanges, ClusterEntry, ClusterMatch, ClusterNode } from "./cluster-node.js";
import { ClusterPlaces } from "./cluster-places.js";
import { positionsOf } from "./context-distance.js";

/** Maximum tickets of one leaf; the newest are kept. */
export const MAX_TICKETS = 64;
/** Maximum length of a search path: a search stops one level above it. */
export const MAX_HEIGHT = 64;

interface Found {
  /** The root for no match; null in an empty tree. */
  readonly place: ClusterPlace | null;
  readonly searchPath: readonly number[];
  readonly distance: number;
  readonly examined: number;
}

/**
 * ContextPilot's published context index (docs/internals/algorithms.md, "ContextPilot's algorithms"), for one scope: contexts clustered by
 * overlap, where {@link ContextIndex} keeps exact served sequences. Mutable; changes are drained as rows; reads no clock. Holds at most
 * `maxNodes` nodes (3 or more): beyond that it evicts least recently used leaves, a tenth of the nodes at a time.
 */
export class ClusterTree {
  readonly #places: ClusterPlaces;
  readonly #leafOfTicket = new Map<TurnId, ClusterPlace>();
  /** By {@link blocksKey}: identical contexts share one leaf, whichever node a search would match. */
  readonly #leafOfBlocks = new Map<string, ClusterPlace>();
  #root: ClusterPlace | null = null;

  /** Takes rows in any order. Throws if a row's parent is missing. */
  constructor(
    nodes: readonly ClusterNode[],
    nextId: number,
    private readonly maxNodes: number,
  ) {
    this.#places = new ClusterPlaces(nodes, nextId);
    for (const place of this.#places) this.#link(place);
  }

  /** Nodes, including the root. */
  get size(): number {
    return this.#places.size;
  }

  /** The id of the next new node; stored, so that ids are never reused. */
  get nextId(): number {
    return this.#places.nextId;
  }

  /**
   * Matches a context of distinct blocks (Alg. 1): descends from the root to the nearest child that shares a block, until a leaf, a node
   * whose children share no block, or a node whose children are all equally near. Read-only.
   */
  search(context: readonly Label[]): ClusterMatch {
    const { place, searchPath, distance, examined } = this.#find(context);
    return { blocks: place?.row.blocks ?? [], searchPath, distance, examined };
  }

  /**
   * Adds a request for a context of distinct blocks, at logical time `now`. An identical known context: its leaf's uses grow. Otherwise a
   * new leaf, its blocks ordered by its match (Alg. 2): a child of a matching inner node, or a sibling of a matching leaf below their
   * intersection. No other node is restructured. Adding a ticket again moves it to the new leaf. Returns the leaf; null for an empty
   * context, which is not stored.
   */
  insert(context: readonly Label[], ticket: TurnId, now: number): NodeId | null {
    this.evict(ticket);
    if (context.length === 0) return null;
    const leaf = this.#leafOfBlocks.get(blocksKey(context)) ?? this.#attach(context);
    const tickets = [...leaf.row.tickets, ticket];
    for (const oldest of tickets.splice(0, tickets.length - MAX_TICKETS)) this.#leafOfTicket.delete(oldest);
    this.#leafOfTicket.set(ticket, leaf);
    Object.assign(leaf.row, { tickets, uses: leaf.row.uses + 1, lastUsed: now });
    this.#places.changed(leaf);
    this.#trim(leaf);
    return leaf.row.id;
  }

  /** The search path of the leaf with this ticket, for scheduling (Alg. 5); null for none. */
  pathOf(ticket: TurnId): readonly number[] | null {
    const leaf = this.#leafOfTicket.get(ticket);
    return leaf === undefined ? null : this.#places.searchPathOf(leaf);
  }

  /** The engine evicted this request. A leaf is removed with its last ticket; O(height). False: unknown or already gone. */
  evict(ticket: TurnId): boolean {
    const leaf = this.#leafOfTicket.get(ticket);
    if (leaf === undefined) return false;
    if (leaf.row.tickets.length === 1) this.#removeLeaf(leaf);
    else {
      this.#leafOfTicket.delete(ticket);
      leaf.row.tickets = leaf.row.tickets.filter((other) => other !== ticket);
      this.#places.changed(leaf);
    }
    return true;
  }

  /**
   * For engines that report no request ids (RAGBoost): evicts least recently used leaves until the rest fits `capacity`, in tokens; each
   * node counts the blocks that its parent lacks. Returns the evicted tickets. O(nodes × blocks).
   */
  evictToCapacity(tokensOf: (label: Label) => number, capacity: number): TurnId[] {
    const ownTokens = (place: ClusterPlace): number => {
      const shared = new Set(this.#places.parentOf(place)?.row.blocks);
      return place.row.blocks.reduce((sum, label) => (shared.has(label) ? sum : sum + tokensOf(label)), 0);
    };
    const evicted: TurnId[] = [];
    let tokens = 0;
    for (const place of this.#places) tokens += ownTokens(place);
    for (const leaf of this.#leastRecentlyUsed()) {
      if (tokens <= capacity) break;
      const parent = this.#places.parentOf(leaf) as ClusterPlace;
      // A sibling that remains alone replaces its parent, so it has to count the parent's blocks too.
      const changed = parent === this.#root || parent.children.size > 2 ? [leaf] : [parent, ...parent.children];
      for (const place of changed) tokens -= ownTokens(place);
      append(evicted, leaf.row.tickets);
      this.#removeLeaf(leaf);
      for (const place of changed) if (this.#places.has(place)) tokens += ownTokens(place);
    }
    return evicted;
  }

  /** Removes blocks whose text was forgotten: leaves that contain any of them, and their mention in inner nodes. O(nodes × blocks). */
  forget(labels: ReadonlySet<Label>): void {
    const naming = [...this.#places].filter(({ row }) => row.blocks.some((label) => labels.has(label)));
    for (const place of naming) if (place.row.tickets.length > 0) this.#removeLeaf(place);
    // A leaf shares a block with every ancestor, so an inner node that keeps a leaf keeps a block.
    for (const place of naming) {
      if (!this.#places.has(place)) continue;
      const siblings = (this.#places.parentOf(place) as ClusterPlace).children;
      siblings.remove(place);
      place.row.blocks = place.row.blocks.filter((label) => !labels.has(label));
      siblings.add(place);
      this.#places.changed(place);
    }
  }

  /** Every node below the root with its search path, parents before children, at most `limit`. */
  entries(limit: number): ClusterEntry[] {
    const entries: ClusterEntry[] = [];
    const totals = this.#totals();
    const pending = [...(this.#root?.children ?? [])].reverse();
    for (let place = pending.pop(); place !== undefined && entries.length < limit; place = pending.pop()) {
      const { id, blocks, distance } = place.row;
      const { uses, live, lastUsed } = totals.get(place) ?? { uses: 0, live: 0, lastUsed: 0 };
      entries.push({ id, searchPath: this.#places.searchPathOf(place), blocks, distance, uses, live, lastUsed });
      for (const child of [...place.children].reverse()) pending.push(child);
    }
    return entries;
  }

  /** Returns and resets what changed since the last call. */
  drain(): ClusterChanges {
    return this.#places.drain();
  }

  /** All nodes, as stored, by id; later changes do not reach them. */
  stored(): ClusterNode[] {
    return this.#places.stored();
  }

  /** Throws if an invariant is broken; for tests, and for checking stored rows. */
  check(): void {
    let tickets = 0;
    let leaves = 0;
    for (const place of this.#places) {
      const { row, children } = place;
      const { id } = row;
      const isRoot = place === this.#root;
      const isLeaf = children.size === 0;
      if (isRoot !== (row.parent === null)) throw new Error(`node ${id}: only the root has no parent`);
      if (isRoot !== (row.blocks.length === 0)) throw new Error(`node ${id}: only the root has no blocks`);
      if (new Set(row.blocks).size !== row.blocks.length) throw new Error(`node ${id}: a block twice`);
      if (isLeaf !== row.tickets.length > 0) throw new Error(`node ${id}: leaves name requests, others do not`);
      if (isLeaf !== row.uses > 0) throw new Error(`node ${id}: leaves count uses, others do not`);
      if (row.tickets.length > MAX_TICKETS) throw new Error(`node ${id}: ${row.tickets.length} requests`);
      if (!isRoot && children.size === 1) throw new Error(`node ${id}: unary chain`);
      if (isLeaf && this.#leafOfBlocks.get(blocksKey(row.blocks)) !== place)
        throw new Error(`node ${id}: a second leaf`);
      for (let above = this.#places.parentOf(place); isLeaf && above !== this.#root && above !== undefined; ) {
        if (intersectionOf(above.row.blocks, row.blocks).length === 0) throw new Error(`node ${id}: a stranger here`);
        above = this.#places.parentOf(above);
      }
      for (const ticket of row.tickets) {
        if (this.#leafOfTicket.get(ticket) !== place) throw new Error(`request ${ticket}: linked wrongly`);
      }
      for (const child of children) {
        if (child.row.parent !== id) throw new Error(`node ${child.row.id}: linked wrongly`);
        if (child.row.position >= row.nextPosition) throw new Error(`node ${child.row.id}: position was never given`);
      }
      children.check();
      tickets += row.tickets.length;
      leaves += isLeaf ? 1 : 0;
    }
    if (tickets !== this.#leafOfTicket.size) throw new Error("a request without a leaf");
    if (leaves !== this.#leafOfBlocks.size) throw new Error("a context without a leaf");
    if (this.size > this.maxNodes) throw new Error(`${this.size} nodes, more than ${this.maxNodes}`);
  }

  #find(context: readonly Label[]): Found {
    const positions = positionsOf(context);
    const searchPath: number[] = [];
    let place = this.#root;
    let distance = 1;
    let examined = 0;
    while (place !== null && place.children.size > 0 && searchPath.length < MAX_HEIGHT - 1) {
      const nearest = place.children.nearest(positions);
      examined += nearest.examined;
      if (nearest.place === null || nearest.indistinct) break;
      place = nearest.place;
      distance = nearest.distance;
      searchPath.push(place.row.position);
    }
    return { place, searchPath, distance, examined };
  }

  /** A new leaf for a context that no leaf has. */
  #attach(context: readonly Label[]): ClusterPlace {
    const match = this.#find(context);
    this.#root ??= this.#places.add(null, { blocks: [], position: 0, distance: 0 });
    const place = match.place ?? this.#root;
    const blocks = alignTo(place.row.blocks, context);
    const isLeaf = place !== this.#root && place.children.size === 0;
    const parent = isLeaf ? this.#split(place, blocks, match.distance) : place;
    const leaf = this.#places.add(parent, { blocks, position: parent.row.nextPosition++, distance: 0 });
    this.#leafOfBlocks.set(blocksKey(blocks), leaf);
    this.#places.changed(parent);
    return leaf;
  }

  /** Replaces a leaf by its intersection with a context, and makes the leaf, unmodified, its child. */
  #split(leaf: ClusterPlace, context: readonly Label[], distance: number): ClusterPlace {
    const parent = this.#places.parentOf(leaf) as ClusterPlace;
    parent.children.remove(leaf);
    const blocks = intersectionOf(leaf.row.blocks, context);
    const upper = this.#places.add(parent, { blocks, position: leaf.row.position, distance });
    upper.row.nextPosition = 1;
    this.#places.hang(leaf, upper, 0);
    return upper;
  }

  #link(place: ClusterPlace): void {
    const { row } = place;
    if (row.parent === null) {
      this.#root = place;
      return;
    }
    this.#places.parentOf(place)?.children.add(place);
    for (const ticket of row.tickets) this.#leafOfTicket.set(ticket, place);
    if (row.tickets.length > 0) this.#leafOfBlocks.set(blocksKey(row.blocks), place);
  }

  /** Removes a leaf. An only remaining sibling replaces their parent; the root is removed with its last child. */
  #removeLeaf(leaf: ClusterPlace): void {
    const parent = this.#places.parentOf(leaf) as ClusterPlace;
    for (const ticket of leaf.row.tickets) this.#leafOfTicket.delete(ticket);
    this.#leafOfBlocks.delete(blocksKey(leaf.row.blocks));
    this.#places.drop(leaf);
    const [sibling] = parent.children;
    if (parent === this.#root) {
      if (sibling !== undefined) return;
      this.#root = null;
      this.#places.drop(parent);
    } else if (sibling !== undefined && parent.children.size === 1) {
      const above = this.#places.parentOf(parent) as ClusterPlace;
      this.#places.drop(parent);
      this.#places.hang(sibling, above, parent.row.position);
    }
  }

  /** Keeps the bound on nodes, but never evicts the leaf that is being served (`spared`). */
  #trim(spared: ClusterPlace): void {
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

  /** Sums over the leaves of each node's subtree. */
  #totals(): ReadonlyMap<ClusterPlace, { readonly uses: number; readonly live: number; readonly lastUsed: number }> {
    const totals = new Map<ClusterPlace, { uses: number; live: number; lastUsed: number }>();
    for (const leaf of this.#leafOfBlocks.values()) {
      const { uses, tickets, lastUsed } = leaf.row;
      for (let place: ClusterPlace | undefined = leaf; place !== undefined; place = this.#places.parentOf(place)) {
        const sum = totals.get(place) ?? { uses: 0, live: 0, lastUsed: 0 };
        totals.set(place, {
          uses: sum.uses + uses,
          live: sum.live + tickets.length,
          lastUsed: Math.max(sum.lastUsed, lastUsed),
        });
      }
    }
    return totals;
  }
}
