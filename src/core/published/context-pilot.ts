import { alignTo } from "../ordering/alignment.js";
import { NOTHING_CARRIED, type OrderingPolicy } from "../ordering/ordering.js";
import type { WithPublished } from "./published-knowledge.js";

/**
 * ContextPilot as published (Alg. 1 and 2): first the blocks of the best matching cluster node, then the rest in relevance order; relevance
 * order if nothing matches. It matches sets of blocks, not the prefix in the engine's cache.
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
    // Turn ids ascend in compose order: a logical clock.
    clusters.insert(context, turn, turn);
  },
};
