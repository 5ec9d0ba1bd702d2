import type { NodeId } from "../text/ids.js";
import { ClusterChildren, type ClusterPlace } from "./cluster-children.js";
import type { ClusterChanges, ClusterNode } from "./cluster-node.js";

/** The nodes of a cluster tree by id, with the rows to store. */
export class ClusterPlaces {
  readonly #byId = new Map<NodeId, ClusterPlace>();
  readonly #dirty = new Set<NodeId>();
  readonly #removed = new Set<NodeId>();
  #nextId: number;

  constructor(nodes: readonly ClusterNode[], nextId: number) {
    this.#nextId = nextId;
    for (const node of nodes) this.#byId.set(node.id, { row: { ...node }, children: new ClusterChildren() });
  }

  get size(): number {
    return this.#byId.size;
  }

  /** The id of the next new node. */
  get nextId(): number {
    return this.#nextId;
  }

  [Symbol.iterator](): Iterator<ClusterPlace> {
    return this.#byId.values();
  }

  has({ row }: ClusterPlace): boolean {
    return this.#byId.has(row.id);
  }

  /** Undefined for the root. Throws if the parent is missing. */
  parentOf({ row }: ClusterPlace): ClusterPlace | undefined {
    if (row.parent === null) return undefined;
    const parent = this.#byId.get(row.parent);
    if (parent === undefined) throw new Error(`cluster tree: node ${row.id} has no parent`);
    return parent;
  }

  /** Child positions from the root to the node. */
  searchPathOf(place: ClusterPlace): number[] {
    const path: number[] = [];
    let step = place;
    for (let parent = this.parentOf(step); parent !== undefined; parent = this.parentOf(step)) {
      path.push(step.row.position);
      step = parent;
    }
    return path.reverse();
  }

  /** Adds a new node as a child of `parent`, or as the root. */
  add(parent: ClusterPlace | null, node: Pick<ClusterNode, "blocks" | "position" | "distance">): ClusterPlace {
    const row: ClusterNode = {
      id: this.#nextId++ as NodeId,
      parent: parent?.row.id ?? null,
      blocks: node.blocks,
      position: node.position,
      nextPosition: 0,
      distance: node.distance,
      uses: 0,
      lastUsed: 0,
      tickets: [],
    };
    const place: ClusterPlace = { row, children: new ClusterChildren() };
    this.#byId.set(row.id, place);
    parent?.children.add(place);
    this.changed(place);
    return place;
  }

  /** Makes a detached node a child of `parent`. */
  hang(place: ClusterPlace, parent: ClusterPlace, position: number): void {
    Object.assign(place.row, { parent: parent.row.id, position });
    parent.children.add(place);
    this.changed(place);
  }

  /** Removes a node, from its parent too. */
  drop(place: ClusterPlace): void {
    this.parentOf(place)?.children.remove(place);
    this.#byId.delete(place.row.id);
    this.#dirty.delete(place.row.id);
    this.#removed.add(place.row.id);
  }

  /** Marks the node's row as changed. */
  changed({ row }: ClusterPlace): void {
    this.#dirty.add(row.id);
  }

  /** Returns and resets what changed since the last call. */
  drain(): ClusterChanges {
    const upserted = [...this.#dirty].flatMap((id) => {
      const place = this.#byId.get(id);
      return place === undefined ? [] : [{ ...place.row }];
    });
    const removed = [...this.#removed];
    this.#dirty.clear();
    this.#removed.clear();
    return { upserted, removed };
  }

  /** All rows by id: copies, as rows change. */
  stored(): ClusterNode[] {
    return Array.from(this.#byId.values(), ({ row }) => ({ ...row })).sort((a, b) => a.id - b.id);
  }
}
