import type { Label, TurnId } from "../text/ids.js";
import { append } from "../text/lists.js";

/** Requests in CRAFT's sliding window. */
export const WINDOW_REQUESTS = 1_000;
/** Minimum requests in the window before a block is promoted into the prefix tree. */
const PROMOTION_THRESHOLD = 2;

/** One request of the window, as stored. */
export interface Access {
  readonly turn: TurnId;
  /** Its blocks in prompt order; never empty. */
  readonly labels: readonly Label[];
  /** How many leading blocks it promoted into the prefix tree. */
  readonly promoted: number;
}

/** What changed since the last drain, to be stored in one transaction. */
export interface AccessChanges {
  readonly upserted: readonly Access[];
  readonly removed: readonly TurnId[];
}

interface PromotedNode {
  readonly children: Map<Label, PromotedNode>;
  /** Requests of the window that promoted this node. */
  requests: number;
}

/**
 * CRAFT's state: the access count of each block over the last {@link WINDOW_REQUESTS} requests (the CA-Table), and a tree of the prefixes
 * of frequently accessed blocks (the CP-Tree). Both derive from the window's rows, so a request that leaves the window takes its counts and
 * its prefix with it. The tree has at most as many nodes as the rows have blocks.
 */
export class AccessWindow {
  /** By turn, ascending. */
  readonly #rows: Access[];
  readonly #counts = new Map<Label, number>();
  readonly #prefixes: PromotedNode = { children: new Map(), requests: 0 };
  readonly #dirty = new Map<TurnId, Access>();
  readonly #removed = new Set<TurnId>();

  /** Takes rows in any order. */
  constructor(rows: readonly Access[]) {
    this.#rows = [...rows].sort((a, b) => a.turn - b.turn);
    for (const row of rows) this.#account(row, 1);
  }

  /** Requests in the window. */
  get size(): number {
    return this.#rows.length;
  }

  /** Requests of the window that accessed this block. */
  countOf(label: Label): number {
    return this.#counts.get(label) ?? 0;
  }

  /** Distinct blocks by access count, descending; ties keep their relevance order. */
  byFrequency(labels: readonly Label[]): Label[] {
    return [...labels].sort((a, b) => this.countOf(b) - this.countOf(a));
  }

  /** The same, but first along the prefix tree: at each node to the child with the highest count. */
  alongPrefixes(labels: readonly Label[]): Label[] {
    const hottest = this.byFrequency(labels);
    const rank = new Map(hottest.map((label, at) => [label, at]));
    const front = new Set<Label>();
    for (let node: PromotedNode | undefined = this.#prefixes; node !== undefined; ) {
      const next = hottestChild(node, hottest, rank);
      if (next === undefined) break;
      front.add(next);
      node = node.children.get(next);
    }
    return [...front, ...hottest.filter((label) => !front.has(label))];
  }

  /**
   * Counts a request that is being served with distinct blocks in this order. Promotes its leading blocks while their counts reach the
   * threshold. Counting a turn again replaces its row. A request without blocks is not counted.
   */
  take(labels: readonly Label[], turn: TurnId): void {
    this.#remove(turn);
    if (labels.length === 0) return;
    const row = { turn, labels: [...labels], promoted: 0 };
    this.#account(row, 1);
    const rare = labels.findIndex((label) => this.countOf(label) < PROMOTION_THRESHOLD);
    this.#account(row, -1);
    this.#put({ ...row, promoted: rare < 0 ? labels.length : rare });
    const [oldest] = this.#rows;
    if (this.size > WINDOW_REQUESTS && oldest !== undefined) this.#remove(oldest.turn);
  }

  /** Removes blocks whose text was forgotten: from the counts, and every promoted prefix from the first of them on. */
  forget(labels: ReadonlySet<Label>): void {
    for (const row of [...this.#rows]) {
      const cut = row.labels.findIndex((label) => labels.has(label));
      if (cut < 0) continue;
      const left = row.labels.filter((label) => !labels.has(label));
      this.#remove(row.turn);
      if (left.length > 0) this.#put({ turn: row.turn, labels: left, promoted: Math.min(row.promoted, cut) });
    }
  }

  /** The promoted prefixes that end at a leaf, older blocks (smaller labels) first, at most `limit`. */
  prefixes(limit: number): Label[][] {
    const found: Label[][] = [];
    const pending: { node: PromotedNode; labels: Label[] }[] = [{ node: this.#prefixes, labels: [] }];
    for (let step = pending.pop(); step !== undefined && found.length < limit; step = pending.pop()) {
      const { node, labels } = step;
      if (node.children.size === 0 && labels.length > 0) found.push(labels);
      const children = [...node.children].sort(([a], [b]) => b - a);
      append(
        pending,
        children.map(([label, child]) => ({ node: child, labels: [...labels, label] })),
      );
    }
    return found;
  }

  /** Returns and resets what changed since the last call. */
  drain(): AccessChanges {
    const changes = { upserted: [...this.#dirty.values()], removed: [...this.#removed] };
    this.#dirty.clear();
    this.#removed.clear();
    return changes;
  }

  /** The window, as stored, oldest first. */
  stored(): Access[] {
    return [...this.#rows];
  }

  #put(row: Access): void {
    this.#rows.splice(this.#rankOf(row.turn), 0, row);
    this.#account(row, 1);
    this.#removed.delete(row.turn);
    this.#dirty.set(row.turn, row);
  }

  #remove(turn: TurnId): void {
    const at = this.#rankOf(turn);
    const row = this.#rows[at];
    if (row?.turn !== turn) return;
    this.#rows.splice(at, 1);
    this.#account(row, -1);
    this.#dirty.delete(turn);
    this.#removed.add(turn);
  }

  /** Adds a row to the counts and the prefix tree, or subtracts it (`by` -1). */
  #account({ labels, promoted }: Access, by: 1 | -1): void {
    for (const label of labels) addTo(this.#counts, label, by);
    let node = this.#prefixes;
    for (const label of labels.slice(0, promoted)) {
      const child = node.children.get(label) ?? { children: new Map<Label, PromotedNode>(), requests: 0 };
      child.requests += by;
      if (child.requests === 0) node.children.delete(label);
      else node.children.set(label, child);
      node = child;
    }
  }

  /** Number of rows of older turns. O(1) for the newest turn, the usual case. */
  #rankOf(turn: TurnId): number {
    return this.#rows.findLastIndex((row) => row.turn < turn) + 1;
  }
}

function addTo(counts: Map<Label, number>, label: Label, by: number): void {
  const count = (counts.get(label) ?? 0) + by;
  if (count === 0) counts.delete(label);
  else counts.set(label, count);
}

/** Iterates the node's children or the labels, whichever are fewer. */
function hottestChild(
  { children }: PromotedNode,
  hottest: readonly Label[],
  rank: ReadonlyMap<Label, number>,
): Label | undefined {
  if (children.size > hottest.length) return hottest.find((label) => children.has(label));
  let best: Label | undefined;
  for (const label of children.keys()) {
    const at = rank.get(label);
    if (at !== undefined && (best === undefined || at < (rank.get(best) ?? 0))) best = label;
  }
  return best;
}
