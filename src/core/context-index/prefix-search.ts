import type { Label } from "../text/ids.js";
import type { PrefixMatch, ServedNode, UsablePath } from "./index-node.js";

/*
 * Read-only searches of the sequences served behind one anchor (docs/internals/algorithms.md, "Prefix-exact ordering").
 */

/** A node whose children have the same type, which a search returns. */
interface TreeNode<N> extends ServedNode {
  readonly children: ReadonlyMap<Label, N & ServedNode>;
}

/** The blocks of a request. */
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

/** How many leading blocks of a sequence were served in this order, and the node where exactly those end, if any. */
export function followSequence<N extends TreeNode<N>>(
  root: N | undefined,
  sequence: readonly Label[],
): { readonly held: number; readonly end: N | null } {
  let node = root;
  let held = 0;
  while (node !== undefined && held < sequence.length) {
    const next: N | undefined = node.children.get(sequence[held] as Label);
    for (const label of next?.row.run ?? []) {
      if (sequence[held] !== label) return { held, end: null };
      held++;
    }
    node = next;
  }
  return { held, end: node ?? null };
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
