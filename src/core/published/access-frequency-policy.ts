import {
  NOTHING_CARRIED,
  type Ordering,
  type OrderingPolicy,
  type OrderingRequest,
  type RetrievedBlock,
} from "../ordering/ordering.js";
import type { Label, TurnId } from "../text/ids.js";
import type { WithPublished } from "./published-knowledge.js";

/** CRAFT's permutation by its CA-Table: blocks by access count over the last requests, descending; ties in relevance order. */
export const accessFrequency: OrderingPolicy<WithPublished> = {
  name: "access-frequency",
  order({ retrieved }, { published: { accesses } }) {
    return { labels: accesses.byFrequency(labelsOf(retrieved)), carried: NOTHING_CARRIED, searchPath: [] };
  },
  learn: takeIn,
};

/** CRAFT's CP-Tree: first along the prefixes of frequently accessed blocks, then the rest by access count. */
export const cpTree: OrderingPolicy<WithPublished> = {
  name: "cp-tree",
  order({ retrieved }, { published: { accesses } }) {
    return { labels: accesses.alongPrefixes(labelsOf(retrieved)), carried: NOTHING_CARRIED, searchPath: [] };
  },
  learn: takeIn,
};

function labelsOf(retrieved: readonly RetrievedBlock[]): Label[] {
  return retrieved.map(({ label }) => label);
}

function takeIn(_: OrderingRequest, { labels }: Ordering, { published }: WithPublished, turn: TurnId): void {
  published.accesses.take(labels, turn);
}
