import {
  type BatchRequest,
  type KeyKnowledge,
  numbered,
  type PlannedRequest,
  turnsInOrder,
} from "../batch/batch-plan.js";
import { sharedPrefixes } from "../batch/shared-prefixes.js";
import { carryOver } from "../ordering/carry-over.js";
import { prefixExact, retrieval, sorted } from "../ordering/ordering.js";
import { type ClusteredKey, clusteredBatch } from "../published/clustering.js";
import {
  accessFrequency,
  contextPilot,
  cpTree,
  knowledgeTree,
  type ScopePolicy,
} from "../published/published-knowledge.js";

/** memprefix's own, two that use no knowledge of the scope, and the published ones. */
export const POLICY_NAMES = [
  "prefix-exact",
  "carry-over",
  "retrieval",
  "sorted",
  "context-pilot",
  "knowledge-tree",
  "access-frequency",
  "cp-tree",
] as const;
export type PolicyName = (typeof POLICY_NAMES)[number];

export const ORDERING_POLICIES: Readonly<Record<PolicyName, ScopePolicy>> = {
  "prefix-exact": prefixExact,
  "carry-over": carryOver,
  retrieval,
  sorted,
  "context-pilot": contextPilot,
  "knowledge-tree": knowledgeTree,
  "access-frequency": accessFrequency,
  "cp-tree": cpTree,
};

/** The best of the policies that send exactly the retrieved blocks. */
export const DEFAULT_POLICY: PolicyName = "prefix-exact";

/** memprefix's own, and ContextPilot's: Alg. 4 and 5, or Alg. 2 and 5 where there is a tree. */
export const BATCH_PLANNERS = ["shared-prefixes", "context-pilot"] as const;
export type BatchPlanner = (typeof BATCH_PLANNERS)[number];
export const DEFAULT_BATCH_PLANNER: BatchPlanner = "shared-prefixes";

export interface BatchPlan {
  /** In execution order. */
  readonly requests: readonly PlannedRequest[];
  /** With the batch's contexts; empty unless the planner is `context-pilot`. */
  readonly trees: readonly ClusteredKey[];
}

/**
 * Plans requests that are all known before the first is executed. Plans each once. Pure and deterministic.
 *
 * Only requests with equal `key` share a prefix or affect each other's order; they run back to back. The caller serves prompts by
 * rank, with the same bytes before the blocks. Start only a few at a time: concurrent requests may compute a shared prefix twice.
 *
 * @param planner `context-pilot` assumes an empty cache
 * @param knowledge what should be cached after each key's bytes; a key without an entry has an empty cache
 * @param trees those that `context-pilot` goes on from
 */
export function planBatch(
  requests: readonly BatchRequest[],
  planner: BatchPlanner = DEFAULT_BATCH_PLANNER,
  knowledge: readonly KeyKnowledge[] = [],
  trees: readonly ClusteredKey[] = [],
): BatchPlan {
  const plan =
    planner === "context-pilot"
      ? clusteredBatch(requests, trees)
      : { ...sharedPrefixes(numbered(requests, knowledge)), trees: [] };
  const { orders, shared, searchPaths, sequence } = plan;
  const planned = turnsInOrder(sequence, requests).map((request, rank) => ({
    request,
    rank,
    order: orders[request] ?? [],
    shared: shared[request] ?? 0,
    searchPath: searchPaths[request] ?? [],
  }));
  return { requests: planned, trees: plan.trees };
}
