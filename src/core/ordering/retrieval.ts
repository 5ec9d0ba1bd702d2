import { NOTHING_CARRIED, type OrderingPolicy } from "./ordering.js";

/** Relevance order, as the memory search returns it: the baseline of every comparison. */
export const retrieval: OrderingPolicy = {
  name: "retrieval",
  order({ retrieved }) {
    return { labels: retrieved.map(({ label }) => label), carried: NOTHING_CARRIED, searchPath: [] };
  },
};
