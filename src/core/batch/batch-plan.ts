/*
 * batch: requests that are all known before the first is executed.
 * Enters: each request's blocks, priority, deadline and conversation; which workers hold what. Leaves: an order of blocks per request, a
 * sequence of requests, a worker for each. Nothing here reads a scope's state.
 */

import {
  type BatchOrder,
  type BatchRequest,
  type NumberedBatch,
  numbered,
  type PlannedRequest,
} from "./batch-request.js";
import { underUrgency } from "./batch-schedule.js";

/** A way to plan a batch: an order of each request's blocks, and the sequence of the requests. */
export type BatchPlanning = (batch: NumberedBatch) => BatchOrder;

/**
 * Plans requests that are all known before the first is executed: in which order each one's blocks stand in its prompt, and in which
 * order the requests are executed. Returned in that order, every request once.
 *
 * A batch may be one user's or go over many: requests share a prefix only where their `key` is equal, and what is planned for one key
 * does not depend on the blocks of another; those of one key are executed back to back unless priorities, deadlines or conversations
 * part them. The caller serves the prompts in order of rank, the blocks in the order given, behind the same bytes for all of one key.
 * Served side by side, requests that run at the same time may compute a prefix twice: start a few at a time. Pure and deterministic.
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
