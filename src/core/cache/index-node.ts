import { append } from "../text/collections.js";
import type { Digest, Label, NodeId } from "../text/ids.js";

/** A node of the radix tree over *served sequences*: the blocks from its anchor's root to itself, in the order an engine has seen them. */
export interface IndexNode {
  readonly id: NodeId;
  /** The node that this one extends; on an anchor's root, the end of the earlier turn whose whole prompt it extends. */
  readonly parent: NodeId | null;
  /** Digest of the prompt before the blocks; only on an anchor's root. */
  readonly anchor: Digest | null;
  /** Blocks after the parent; empty only on an anchor's root. */
  readonly run: readonly Label[];
  /** Child position under the parent, never reused. Search paths consist of these. */
  readonly position: number;
  readonly nextPosition: number;
  /** Requests that passed through this node or ended here. */
  readonly uses: number;
  /** Requests that ended here and are not evicted. */
  readonly live: number;
  /** The scope's logical clock at the last use. */
  readonly lastUsed: number;
  /** Milliseconds since the epoch; 0: not known. */
  readonly usedAt: number;
  /** Tokens of no block: the prompt before the blocks on an anchor's root, elsewhere the rest of the last prompt that ended here. */
  readonly tokens: number;
}

export interface ServedNode {
  readonly row: IndexNode;
  /** Null on an anchor's root. */
  readonly parent: ServedNode | null;
  /** The next less recently used node after the same anchor. */
  readonly staler: ServedNode | null;
  readonly children: ReadonlyMap<Label, ServedNode>;
  mark: number;
}

/** Shared by all nodes without any: own tables would be half of an index's memory. Never written. */
const NO_CHILDREN = new Map<Label, TreeNode>();
const NO_CONTINUATIONS = new Set<TreeNode>();

export class TreeNode implements ServedNode {
  /** The list of its anchor's nodes, most recently used first; parents before children, so that one pass builds on parents' results. */
  fresher: TreeNode | null = null;
  staler: TreeNode | null = null;
  children = NO_CHILDREN;
  /** Anchors' roots whose prefix is a whole prompt that ended here. */
  continuations = NO_CONTINUATIONS;
  mark = 0;

  constructor(
    readonly row: { -readonly [K in keyof IndexNode]: IndexNode[K] },
    public above: TreeNode | null,
  ) {}

  get parent(): TreeNode | null {
    return this.row.anchor === null ? this.above : null;
  }

  get isLeaf(): boolean {
    return this.children.size === 0 && this.continuations.size === 0;
  }

  *extensions(): Generator<TreeNode, void, undefined> {
    yield* this.children.values();
    yield* this.continuations;
  }

  /** From this node up to its anchor's root, inclusive. */
  toRoot(): TreeNode[] {
    const nodes: TreeNode[] = [this];
    for (let node = this.parent; node !== null; node = node.parent) nodes.push(node);
    return nodes;
  }

  get labels(): readonly Label[] {
    return this.toRoot()
      .toReversed()
      .flatMap(({ row }) => row.run);
  }

  link(): void {
    const { row, above } = this;
    if (above === null) return;
    if (row.anchor === null) {
      if (above.children === NO_CHILDREN) above.children = new Map();
      above.children.set(row.run[0] as Label, this);
    } else {
      if (above.continuations === NO_CONTINUATIONS) above.continuations = new Set();
      above.continuations.add(this);
    }
  }

  /** Moves this node right after a more recently used one. O(1), because it runs for every node that a request uses. */
  listAfter(fresher: TreeNode): void {
    this.unlist();
    this.fresher = fresher;
    this.staler = fresher.staler;
    if (this.staler !== null) this.staler.fresher = this;
    fresher.staler = this;
  }

  unlist(): void {
    if (this.fresher !== null) this.fresher.staler = this.staler;
    if (this.staler !== null) this.staler.fresher = this.fresher;
  }
}

/** These nodes and all that extend them, each before its extensions. */
export function withExtensions(tops: Iterable<TreeNode>): TreeNode[] {
  const nodes = [...tops];
  for (const node of nodes) append(nodes, node.extensions());
  return nodes;
}

/** How many leading blocks were served in this order, and the node where exactly those end. `next`: the block after, within a run. */
export function followSequence(
  root: ServedNode | undefined,
  sequence: readonly Label[],
): { readonly held: number; readonly end: ServedNode | null; readonly next: Label | null } {
  let node = root;
  let held = 0;
  while (node !== undefined && held < sequence.length) {
    const next: ServedNode | undefined = node.children.get(sequence[held] as Label);
    for (const label of next?.row.run ?? []) {
      if (sequence[held] !== label) return { held, end: null, next: held === sequence.length ? label : null };
      held++;
    }
    node = next;
  }
  return { held, end: node ?? null, next: null };
}
