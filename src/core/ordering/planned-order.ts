import type { Digest, Label } from "../text/ids.js";
import { NOTHING_CARRIED, type OrderingPolicy } from "./ordering.js";
import { orderBehind, prefixExact } from "./prefix-exact.js";

/**
 * The blocks that a batch plan places first in a request's prompt, as digests of their texts: labels are assigned only when the request is
 * composed. All other blocks follow as `prefix-exact` orders them behind those.
 */
export function plannedOrder(
  planned: readonly Digest[],
  textDigestOf: (label: Label) => Digest | undefined,
): OrderingPolicy {
  const ranks = new Map(planned.map((digest, rank) => [digest, rank]));
  const rankOf = (label: Label): number | undefined => {
    const digest = textDigestOf(label);
    return digest === undefined ? undefined : ranks.get(digest);
  };
  return {
    name: "batch",
    order: (request, known) => {
      const front = request.retrieved
        .flatMap(({ label }) => {
          const rank = rankOf(label);
          return rank === undefined ? [] : [{ label, rank }];
        })
        .sort((a, b) => a.rank - b.rank)
        .map(({ label }) => label);
      if (front.length === 0) return prefixExact.order(request, known);
      return {
        labels: [...front, ...orderBehind(front, request, known)],
        carried: NOTHING_CARRIED,
        searchPath: [],
      };
    },
    orderBehind,
  };
}
