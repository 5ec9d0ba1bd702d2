import type { Ordering, OrderingPolicy, OrderingRequest, ScopeKnowledge } from "./ordering.js";

/**
 * The order of a prompt that extends one which was sent before it: that one's blocks where they stood, and behind them what the request
 * has beside them. A carried block that the request wants by now counts as retrieved.
 */
export function orderAfter(
  before: Ordering,
  policy: OrderingPolicy,
  request: OrderingRequest,
  known: ScopeKnowledge,
): Ordering {
  const wanted = new Set(request.retrieved.map(({ label }) => label));
  // Where the scope was loaded again in between, labels may be others than they were.
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
    carried: new Set([...before.carried].filter((label) => !wanted.has(label))),
    searchPath: before.searchPath,
  };
}
