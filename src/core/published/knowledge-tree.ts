import { alignTo } from "../ordering/alignment.js";
import { NOTHING_CARRIED, type OrderingPolicy } from "../ordering/ordering.js";

/**
 * RAGCache++'s knowledge tree: a greedy walk over the served sequences that takes the first matching child at each node, then the rest in
 * relevance order. Cheaper than the exact search of `prefix-exact`, but can miss a longer prefix.
 */
export const knowledgeTree: OrderingPolicy = {
  name: "knowledge-tree",
  order({ anchor, retrieved }, { index }) {
    const context = retrieved.map(({ label }) => label);
    const { labels, searchPath } = index.walk(anchor, new Set(context));
    return { labels: alignTo(labels, context), carried: NOTHING_CARRIED, searchPath };
  },
};
