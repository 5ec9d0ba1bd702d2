import { NOTHING_CARRIED, type OrderingPolicy } from "./ordering.js";

/** By label, oldest block first: the same blocks always have the same order. */
export const sorted: OrderingPolicy = {
  name: "sorted",
  order({ retrieved }) {
    const labels = retrieved.map(({ label }) => label).sort((a, b) => a - b);
    return { labels, carried: NOTHING_CARRIED, searchPath: [] };
  },
};
