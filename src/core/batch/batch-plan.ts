/*
 * batch: planning requests that are all known before the first is executed.
 * Enters: each request's blocks, priority, deadline and conversation; what should be cached already. Leaves: an order of blocks per
 * request, and an execution order of the requests. What is cached enters as plain data: nothing here reads a scope's state.
 */

import {
  type BatchOrder,
  type BatchRequest,
  type KeyKnowledge,
  type NumberedBatch,
  numbered,
  type PlannedRequest,
} from "./batch-request.js";
import { underUrgency } from "./batch-schedule.js";

/** A batch planner: the order of each request's blocks, and the execution order of the requests. */
export type BatchPlanning = (batch: NumberedBatch) => BatchOrder;

/**
 * Plans requests that are all known before the first is executed: the order of each one's blocks in its prompt, and the execution order.
 * Returns every request once, in execution order.
 *
 * A batch may be of one user or of many. Requests share a prefix only if their `key` is equal, and the plan for one key does not depend on
 * the blocks of another. Requests with one key are executed back to back unless priorities, deadlines or conversations separate them. The
 * caller serves the prompts by rank, with the blocks in the planned order behind the same bytes for all requests of one key. Concurrent
 * requests may compute a shared prefix twice: start only a few at a time. Pure and deterministic.
 *
 * @param knowledge what should be cached behind each key's bytes; a key without an entry is planned from an empty cache
 */
export function planBatchBy(
  plan: BatchPlanning,
  requests: readonly BatchRequest[],
  knowledge: readonly KeyKnowledge[] = [],
): PlannedRequest[] {
  const { orders, shared, searchPaths, sequence } = plan(numbered(requests, knowledge));
  return underUrgency(sequence, requests).map((request, rank) => ({
    request,
    rank,
    order: orders[request] ?? [],
    shared: shared[request] ?? 0,
    searchPath: searchPaths[request] ?? [],
  }));
}
