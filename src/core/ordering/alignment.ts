import type { Label } from "../text/ids.js";

/** A context behind a node's prefix (Alg. 2): the node's blocks that the context has, in the node's order, then the rest in its own. */
export function alignTo(prefix: readonly Label[], context: readonly Label[]): Label[] {
  if (prefix.length === 0) return [...context];
  const wanted = new Set(context);
  const front = new Set(prefix.filter((label) => wanted.has(label)));
  return [...front, ...context.filter((label) => !front.has(label))];
}

/** The blocks of `a` that `b` has too, in the order of `a`. */
export function intersectionOf(a: readonly Label[], b: readonly Label[]): Label[] {
  const others = new Set(b);
  return a.filter((label) => others.has(label));
}

/** Equal for contexts of the same blocks in whatever order: they count as identical, because an index decides the order. */
export function blocksKey(context: readonly number[]): string {
  return Uint32Array.from(context).sort().join();
}
