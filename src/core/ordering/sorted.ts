import { NOTHING_CARRIED, type OrderingPolicy } from "./ordering.js";

/** By label, the oldest block first: the same blocks always stand in the same order. */
export const sorted: OrderingPolicy = {
  name: "sorted",
  order({ retrieved }) {
    const labels = retrieved.map(({ label }) => label).sort((a, b) => a - b);
    return { labels, carried: NOTHING_CARRIED, searchPath: [] };
  },
};
