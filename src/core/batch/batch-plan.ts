/*
 * batch: planning requests that are all known before the first is executed.
 * Enters: each request's blocks, priority, deadline and conversation; which workers hold what. Leaves: an order of blocks per request, an
 * execution order of the requests, a worker for each. Nothing here reads a scope's state.
 */

import {
  type BatchOrder,
  type BatchRequest,
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
 */
export function planBatchBy(plan: BatchPlanning, requests: readonly BatchRequest[]): PlannedRequest[] {
  const { orders, searchPaths, sequence } = plan(numbered(requests));
  return underUrgency(sequence, requests).map((request, rank) => ({
    request,
    rank,
    order: orders[request] ?? [],
    searchPath: searchPaths[request] ?? [],
  }));
}
