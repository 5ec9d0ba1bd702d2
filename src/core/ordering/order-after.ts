import type { Label } from "../text/ids.js";
import type { Ordering, OrderingPolicy, OrderingRequest, ScopeKnowledge } from "./ordering.js";

/**
 * Orders a prompt that extends an earlier one: the earlier blocks keep their places, the request's other blocks follow. A carried block
 * that the request retrieved counts as retrieved. Orders from scratch if the request may no longer carry what the earlier prompt did,
 * because another process drew on the memory bank meanwhile.
 */
export function orderAfter<K extends ScopeKnowledge>(
  before: Ordering,
  policy: OrderingPolicy<K>,
  request: OrderingRequest,
  known: K,
): Ordering {
  const wanted = new Set(request.retrieved.map(({ label }) => label));
  const carried = [...before.carried].filter((label) => !wanted.has(label));
  if (!isAllowed(carried, request)) return policy.order(request, known);
  // Labels can change if the scope was reloaded meanwhile.
  const front = before.labels.filter((label) => wanted.has(label) || before.carried.has(label));
  const placed = new Set(front);
  const rest = request.retrieved.filter(({ label }) => !placed.has(label));
  const behind = (): Ordering["labels"] => {
    if (rest.length === 0) return [];
    if (policy.orderBehind !== undefined) return policy.orderBehind(front, request, known);
    return policy.order({ ...request, retrieved: rest, carrying: null }, known).labels;
  };
  return {
    labels: [...front, ...behind()],
    carried: new Set(carried),
    searchPath: before.searchPath,
  };
}

function isAllowed(carried: readonly Label[], { carrying }: OrderingRequest): boolean {
  let left = carrying?.tokens ?? 0;
  for (const label of carried) left -= carrying?.tokensOf(label) ?? Number.POSITIVE_INFINITY;
  return left >= 0;
}
