import { alignTo, ClusterTree } from "../src/core/index.js";
import { keptIn } from "../src/core/text/collections.js";
import type { ExecutedRequest, RecordedBatch } from "./recorded-batch.js";

/** Nodes of a user's cluster tree. */
const MAX_NODES = 20_000;

/** A batch ordered by Alg. 1 and 2 while its requests come in, executed as they came. */
export function onlineOrders({ requests }: Pick<RecordedBatch, "requests">): readonly ExecutedRequest[] {
  const trees = new Map<string, ClusterTree>();
  return requests.map(({ key, blocks }, request) => {
    const tree = keptIn(trees, key, () => new ClusterTree([], MAX_NODES));
    const context = blocks.map(({ label }) => label);
    const order = alignTo(tree.search(context).blocks, context);
    tree.insert(context, request);
    return { request, order };
  });
}
