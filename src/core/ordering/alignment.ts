import type { Label } from "../text/ids.js";

/**
 * Aligns a context with a node's prefix (Alg. 2): the context's blocks that the prefix has, in the prefix's order, then the rest in the
 * context's order.
 */
export function alignTo(prefix: readonly Label[], context: readonly Label[]): Label[] {
  if (prefix.length === 0) return [...context];
  const wanted = new Set(context);
  const front = new Set(prefix.filter((label) => wanted.has(label)));
  return [...front, ...context.filter((label) => !front.has(label))];
}

/** The blocks of `a` that are also in `b`, in the order of `a`. */
export function intersectionOf(a: readonly Label[], b: readonly Label[]): Label[] {
  const others = new Set(b);
  return a.filter((label) => others.has(label));
}

/** A key of a set of blocks: equal for contexts with the same blocks in any order, because the index decides the order. */
export function blocksKey(context: readonly number[]): string {
  return Uint32Array.from(context).sort().join();
}
