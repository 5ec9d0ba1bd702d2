import type { BatchOrder, NumberedBatch } from "../batch/batch-request.js";
import { blocksKey } from "../ordering/alignment.js";
import type { Label, NodeId, TurnId } from "../text/ids.js";
import { groupBy } from "../text/lists.js";
import type { ClusterNode } from "./cluster-node.js";
import { clusterContexts } from "./clustering.js";
import { schedule } from "./schedule.js";

/**
 * ContextPilot's batch planning: the tree of Alg. 4 over all contexts, each request's blocks in its leaf's order, executed by Alg. 5. As
 * published, it plans from an empty cache. Time and memory are those of {@link clusterContexts}.
 */
export function clusteredBatch({ sets, labels }: NumberedBatch): BatchOrder {
  // Requests with the same blocks share a leaf, which keeps only some of their tickets.
  const alike = [...groupBy(sets.keys(), (request) => blocksKey(sets[request] ?? [])).values()];
  const contexts = alike.map(([request = 0], at) => ({
    ticket: at as TurnId,
    blocks: (sets[request] ?? []) as readonly Label[],
  }));
  const orders: (readonly Label[])[] = sets.map(() => []);
  const searchPaths: (readonly number[])[] = sets.map(() => []);
  const pathOf = new Map<NodeId | null, readonly number[]>();
  // Parents come before their children.
  for (const node of clusterContexts(contexts, 0, 0).nodes) {
    pathOf.set(node.id, pathBehind(pathOf, node));
    for (const ticket of node.tickets) {
      const order = node.blocks.map((block) => labels[block] as Label);
      for (const request of alike[ticket] ?? []) {
        orders[request] = order;
        searchPaths[request] = pathOf.get(node.id) ?? [];
      }
    }
  }
  return { orders, shared: orders.map(({ length }) => length), searchPaths, sequence: schedule(searchPaths) };
}

function pathBehind(pathOf: ReadonlyMap<NodeId | null, readonly number[]>, node: ClusterNode): readonly number[] {
  return node.parent === null ? [] : [...(pathOf.get(node.parent) ?? []), node.position];
}
