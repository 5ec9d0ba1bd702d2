import type { Label } from "../text/ids.js";

/**
 * A node of a tree in a list by last use, most recent first; nodes used by one request from the root down. So parents come before children,
 * and a pass over the list can build each node's result on its parent's.
 */
export interface Used<T> {
  readonly row: { readonly id: number; readonly lastUsed: number };
  readonly children: ReadonlyMap<Label, T>;
  parent: T | null;
  fresher: T | null;
  staler: T | null;
}

/** Moves a node right behind a more recently used one. O(1), because it runs for every node that a request uses. */
export function placeBehind<T extends Used<T>>(node: T, fresher: T): void {
  if (fresher.staler === node) return;
  takeOut(node);
  node.fresher = fresher;
  node.staler = fresher.staler;
  if (node.staler !== null) node.staler.fresher = node;
  fresher.staler = node;
}

export function takeOut<T extends Used<T>>(node: T): void {
  if (node.fresher !== null) node.fresher.staler = node.staler;
  if (node.staler !== null) node.staler.fresher = node.fresher;
  node.fresher = null;
  node.staler = null;
}

/** After loading: lists all nodes below a root, which heads the list. */
export function listByUse<T extends Used<T>>(root: T): void {
  const listed = fromTheTop(root).sort((a, b) => b.row.lastUsed - a.row.lastUsed);
  for (const [at, node] of listed.entries()) if (at > 0) placeBehind(node, listed[at - 1] as T);
}

/** Throws if the list misses a node of the tree or breaks the order; for tests. */
export function checkListByUse<T extends Used<T>>(root: T): void {
  const listed = new Set<T>();
  for (let node: T | null = root; node !== null; node = node.staler) {
    const { row, parent, staler }: T = node;
    if (parent === null ? node !== root : !listed.has(parent)) throw new Error(`node ${row.id}: before its parent`);
    if (staler !== null && (staler.fresher !== node || staler.row.lastUsed > row.lastUsed))
      throw new Error(`node ${row.id}: before one that is fresher`);
    listed.add(node);
  }
  for (const node of fromTheTop(root)) if (!listed.has(node)) throw new Error(`node ${node.row.id}: not listed`);
}

/** All nodes of a tree, parents before their children. */
function fromTheTop<T extends Used<T>>(root: T): T[] {
  const nodes = [root];
  for (const node of nodes) for (const child of node.children.values()) nodes.push(child);
  return nodes;
}
