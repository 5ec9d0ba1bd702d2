import { NOTHING_CARRIED, type ScopePolicy } from "../../core/index.js";
import { type PeerOrders, type RecordedTrace, TraceError } from "./recorded-trace.js";

/**
 * A policy that gives each question of a trace, asked from the first on as a single request, the order that another system gave it.
 * For one replay: it counts the questions. Throws {@link TraceError} where there is no order, or one of other blocks.
 */
export function recordedOrder(trace: RecordedTrace, peer: PeerOrders, k: number): ScopePolicy {
  const orders = peer.orders[`k${k}`];
  if (orders === undefined) throw new TraceError(`peer: has no orders for k = ${k}`);
  let at = 0;
  return {
    // Plans name a policy; this one stands in for the system that is recorded most.
    name: "context-pilot",
    order: ({ retrieved }) => {
      const asked = trace.questions[at]?.retrieved.slice(0, k) ?? [];
      const order = orders[at++] ?? [];
      // Labels are numbered as memories first appear, so a block is known by its place in what was retrieved.
      const labels = order.flatMap((memory) => retrieved[asked.indexOf(memory)]?.label ?? []);
      if (labels.length !== retrieved.length)
        throw new TraceError(`peer: order ${at - 1} is not of what was retrieved`);
      return { labels, carried: NOTHING_CARRIED, searchPath: [] };
    },
  };
}
