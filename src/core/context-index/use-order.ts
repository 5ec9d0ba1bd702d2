import type { Label } from "../text/ids.js";

/**
 * A node of a tree in a list by last use: the freshest first, those that one request used from the top of the tree on. So a parent
 * stands before its children, and who goes down the list knows of each node what its parent came to.
 */
export interface Used<T> {
  readonly row: { readonly id: number; readonly lastUsed: number };
  readonly children: ReadonlyMap<Label, T>;
  parent: T | null;
  fresher: T | null;
  staler: T | null;
}

/** Puts a node right behind a fresher one, from wherever it stood; in constant time, as it is done for all that a request uses. */
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

/** Lists what is below a root, which heads the list, after loading. */
export function listByUse<T extends Used<T>>(root: T): void {
  const listed = fromTheTop(root).sort((a, b) => b.row.lastUsed - a.row.lastUsed);
  for (const [at, node] of listed.entries()) if (at > 0) placeBehind(node, listed[at - 1] as T);
}

/** Throws where the list leaves a node of the tree out, or breaks its order; for tests. */
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
