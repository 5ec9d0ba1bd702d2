import { orderBehind, orderForReuse } from "./order-for-reuse.js";
import { NOTHING_CARRIED, type OrderingPolicy } from "./ordering.js";

/**
 * Prefix-exact ordering, memstem's own (docs/internals/algorithms.md, "Prefix-exact ordering"): first the served sequence of retrieved
 * blocks that saves the most prefill tokens, then the rest in the order that later requests can reuse most of.
 */
export const prefixExact: OrderingPolicy = {
  name: "prefix-exact",
  order({ anchor, retrieved }, { index, recent }) {
    const match = index.search(anchor, new Map(retrieved.map(({ label, tokens }) => [label, tokens])));
    const matched = new Set(match.labels);
    const rest = retrieved.filter(({ label }) => !matched.has(label));
    const asked = retrieved.map(({ label }) => label);
    return {
      labels: [...match.labels, ...orderForReuse(match.labels, rest, asked, recent)],
      carried: NOTHING_CARRIED,
      searchPath: match.searchPath,
    };
  },
  orderBehind,
};
