/* prefix-search: searches served sequences. Enters: an anchor's root, wanted blocks. Leaves: the served path that serves them best. */

import { followSequence, type ServedNode } from "../cache/index-node.js";
import type { Label } from "../text/ids.js";

export interface ServedPath {
  readonly labels: readonly Label[];
  /** Child positions from the anchor's root to the path's end. */
  readonly searchPath: readonly number[];
}

/** The part of a served sequence that requests can use. */
export interface UsablePath {
  readonly labels: readonly Label[];
  readonly lastUsed: number;
}

type WantedBlocks = Pick<ReadonlySet<Label>, "size" | "has" | "keys">;

const NO_PATH: ServedPath = { labels: [], searchPath: [] };

export function pathTo(node: ServedNode, taken: number): ServedPath {
  const runs: (readonly Label[])[] = [node.row.run.slice(0, taken)];
  const searchPath: number[] = [];
  for (let step = node; step.parent !== null; step = step.parent) {
    searchPath.push(step.row.position);
    runs.push(step.parent.row.run);
  }
  return { labels: runs.reverse().flat(), searchPath: searchPath.reverse() };
}

/** The served path that saves most tokens, by those of each wanted block, and whose every block is wanted. Exact. Ties go to the most recently used path, then to the older node. */
export function searchPrefix(
  root: ServedNode | undefined,
  wanted: ReadonlyMap<Label, number>,
): ServedPath & { tokens: number } {
  const nothing = { ...NO_PATH, tokens: 0 };
  if (root === undefined) return nothing;
  let best = { node: root, taken: 0, tokens: 0 };
  const pending = [{ node: root, tokens: 0 }];
  for (let step = pending.pop(); step !== undefined; step = pending.pop()) {
    const { node } = step;
    const { run } = node.row;
    let { tokens } = step;
    let taken = 0;
    for (; taken < run.length; taken++) {
      const weight = wanted.get(run[taken] as Label);
      if (weight === undefined) break;
      tokens += weight;
    }
    if (tokens > best.tokens || (tokens === best.tokens && taken > 0 && isFresher(node.row, best.node.row)))
      best = { node, taken, tokens };
    if (taken === run.length) eachWanted(node.children, wanted, (child) => pending.push({ node: child, tokens }));
  }
  return best.tokens === 0 ? nothing : { ...pathTo(best.node, best.taken), tokens: best.tokens };
}

/** Served paths as far as one request wants every block, least recently used first, none a prefix of another unless used later. */
export function usablePaths(root: ServedNode | undefined, requests: Iterable<WantedBlocks>): UsablePath[] {
  if (root === undefined) return [];
  const reached = new Map<ServedNode, number>();
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
    .map(([node, taken]) => ({ labels: pathTo(node, taken).labels, lastUsed: node.row.lastUsed }));
}

/** A greedy walk to the child that starts with the earliest wanted block, in the set's insertion order. */
export function walkGreedily(root: ServedNode | undefined, wanted: ReadonlySet<Label>): ServedPath {
  if (root === undefined) return NO_PATH;
  const left = new Set(wanted);
  let node = root;
  for (;;) {
    const { children }: ServedNode = node;
    const first = children.size === 0 ? undefined : [...left].find((label) => children.has(label));
    const child = first === undefined ? undefined : children.get(first);
    if (child === undefined) return pathTo(node, node.row.run.length);
    const unwanted = child.row.run.findIndex((label) => !left.delete(label));
    if (unwanted >= 0) return pathTo(child, unwanted);
    node = child;
  }
}

const NOTHING_SERVED: ReadonlySet<Label> = new Set();

export function servedAfter(root: ServedNode | undefined, sequence: readonly Label[]): Pick<ReadonlySet<Label>, "has"> {
  const { end, next } = followSequence(root, sequence);
  return next === null ? (end?.children ?? NOTHING_SERVED) : new Set([next]);
}

function isFresher(a: ServedNode["row"], b: ServedNode["row"]): boolean {
  return a.lastUsed > b.lastUsed || (a.lastUsed === b.lastUsed && a.id < b.id);
}

/** Calls `visit` for children that start with a wanted block. No generator, because every step of every search runs it. */
function eachWanted(children: ServedNode["children"], wanted: WantedBlocks, visit: (child: ServedNode) => void): void {
  if (children.size <= wanted.size) {
    for (const [first, child] of children) if (wanted.has(first)) visit(child);
    return;
  }
  for (const label of wanted.keys()) {
    const child = children.get(label);
    if (child !== undefined) visit(child);
  }
}
