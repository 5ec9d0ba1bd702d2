import { alignTo } from "../ordering/alignment.js";
import { NOTHING_CARRIED, type OrderingPolicy } from "../ordering/ordering.js";
import type { WithPublished } from "./published-knowledge.js";

/**
 * ContextPilot as published (Alg. 1 and 2): the blocks of the best matching node of its cluster tree first, the others after them
 * in relevance order; no match: unchanged. It matches sets of blocks, not the prefix that an engine will find.
 */
export const contextPilot: OrderingPolicy<WithPublished> = {
  name: "context-pilot",
  order({ retrieved }, { published: { clusters } }) {
    const context = retrieved.map(({ label }) => label);
    const { blocks, searchPath } = clusters.search(context);
    return { labels: alignTo(blocks, context), carried: NOTHING_CARRIED, searchPath };
  },
  learn({ retrieved }, _ordering, { published: { clusters } }, turn) {
    const context = retrieved.map(({ label }) => label);
    // Turns are numbered in the order in which they were composed: a clock.
    clusters.insert(context, turn, turn);
  },
};
