import type { OrderingPolicy } from "./ordering.js";

/**
 * Ours (ALGORITHMS.md §4): the served sequence that saves the most prefill tokens while holding retrieved blocks only, then the
 * rest in relevance order. Where nothing is cached the order is left alone.
 */
export const prefixExact: OrderingPolicy = {
  name: "prefix-exact",
  order({ anchor, retrieved }, index) {
    const match = index.search(anchor, new Map(retrieved.map(({ label, tokens }) => [label, tokens])));
    const matched = new Set(match.labels);
    const rest = retrieved.map(({ label }) => label).filter((label) => !matched.has(label));
    return {
      labels: [...match.labels, ...rest],
      cachedBlocks: match.labels.length,
      cachedTokens: match.tokens,
      searchPath: match.searchPath,
    };
  },
};
