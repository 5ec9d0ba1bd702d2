import type { Digest, Label } from "../text/ids.js";
import { NOTHING_CARRIED, type OrderingPolicy } from "./ordering.js";

/**
 * The order that a batch plan chose for a request's blocks, as digests of their texts: labels are assigned only when the request is
 * composed. Blocks unknown to the plan follow in relevance order.
 */
export function plannedOrder(
  planned: readonly Digest[],
  textDigestOf: (label: Label) => Digest | undefined,
): OrderingPolicy {
  const ranks = new Map(planned.map((digest, rank) => [digest, rank]));
  const rankOf = (label: Label) => {
    const digest = textDigestOf(label);
    return (digest === undefined ? undefined : ranks.get(digest)) ?? planned.length;
  };
  return {
    name: "batch",
    order: ({ retrieved }) => ({
      labels: retrieved
        .map(({ label }) => ({ label, rank: rankOf(label) }))
        .sort((a, b) => a.rank - b.rank)
        .map(({ label }) => label),
      carried: NOTHING_CARRIED,
      searchPath: [],
    }),
  };
}
