import { NOTHING_CARRIED, type OrderingPolicy } from "../ordering/ordering.js";

/** CRAFT: blocks in promoted prefixes first, then by how often the last requests accessed them ({@link AccessWindow}). */
export const accessFrequency: OrderingPolicy = {
  name: "access-frequency",
  order({ retrieved }, { accesses }) {
    const labels = accesses.order(retrieved.map(({ label }) => label));
    return { labels, carried: NOTHING_CARRIED, searchPath: [] };
  },
  learn(_request, { labels }, { accesses }, turn) {
    accesses.take(labels, turn);
  },
};
