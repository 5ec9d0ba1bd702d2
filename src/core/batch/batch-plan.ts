import { clusteredBatch } from "../published/clustered-batch.js";
import {
  type BatchOrder,
  type BatchRequest,
  type NumberedBatch,
  numbered,
  type PlannedRequest,
} from "./batch-request.js";
import { underUrgency } from "./batch-schedule.js";
import { sharedPrefixes } from "./shared-prefixes.js";

/** Ways to plan a batch: ours, and ContextPilot's (Alg. 4 and 5). */
export const BATCH_PLANNERS = ["shared-prefixes", "context-pilot"] as const;
export type BatchPlanner = (typeof BATCH_PLANNERS)[number];

const ORDERED_BY: Readonly<Record<BatchPlanner, (batch: NumberedBatch) => BatchOrder>> = {
  "shared-prefixes": sharedPrefixes,
  "context-pilot": clusteredBatch,
};

/**
 * Plans requests that are all known before the first is executed: in which order each one's blocks stand in its prompt, and in which
 * order the requests are executed. Returned in that order, every request once.
 *
 * A batch may be one user's or go over many: requests share a prefix only where their `key` is equal, and what is planned for one key
 * does not depend on the blocks of another; those of one key are executed back to back unless priorities, deadlines or conversations
 * part them. The caller serves the prompts in order of rank, the blocks in the order given, behind the same bytes for all of one key.
 * Served side by side, requests that run at the same time may compute a prefix twice: start a few at a time. Pure and deterministic.
 */
export function planBatch(
  requests: readonly BatchRequest[],
  planner: BatchPlanner = "shared-prefixes",
): PlannedRequest[] {
  const { orders, searchPaths, sequence } = ORDERED_BY[planner](numbered(requests));
  return underUrgency(sequence, requests).map((request, rank) => ({
    request,
    rank,
    order: orders[request] ?? [],
    searchPath: searchPaths[request] ?? [],
  }));
}
