import { NOTHING_CARRIED, type OrderingPolicy } from "./ordering.js";

/** Relevance order, as a memory search gives it: what every other policy is compared with. */
export const retrieval: OrderingPolicy = {
  name: "retrieval",
  order({ retrieved }) {
    return { labels: retrieved.map(({ label }) => label), carried: NOTHING_CARRIED, searchPath: [] };
  },
};
