import type { Label } from "../text/ids.js";
import { append } from "../text/lists.js";
import { orderForReuse } from "./order-for-reuse.js";
import type { OrderingRequest, ScopeKnowledge } from "./ordering.js";

/**
 * Orders the blocks of a request that are not in front already: first what was served behind the front before, the most relevant
 * continuation at each step, then the rest in the order that later requests can reuse most of.
 */
export function orderBehind(
  front: readonly Label[],
  { anchor, retrieved }: OrderingRequest,
  { index, recent }: ScopeKnowledge,
): readonly Label[] {
  const placed = new Set(front);
  const left = retrieved.filter(({ label }) => !placed.has(label));
  const sequence = [...front];
  const isServed = (label: Label) => index.heldBlocks(anchor, [...sequence, label]) > sequence.length;
  for (let next = left.findIndex(({ label }) => isServed(label)); next >= 0; ) {
    append(
      sequence,
      left.splice(next, 1).map(({ label }) => label),
    );
    next = left.findIndex(({ label }) => isServed(label));
  }
  const asked = retrieved.map(({ label }) => label);
  return [...sequence.slice(front.length), ...orderForReuse(sequence, left, asked, recent)];
}
