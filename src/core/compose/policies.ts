import {
  type BatchPlanning,
  type BatchRequest,
  type KeyKnowledge,
  type PlannedRequest,
  planBatchBy,
} from "../batch/batch-plan.js";
import { sharedPrefixes } from "../batch/shared-prefixes.js";
import { carryOver } from "../ordering/carry-over.js";
import { retrieval, sorted } from "../ordering/ordering.js";
import { prefixExact } from "../ordering/prefix-exact.js";
import { clusteredBatch } from "../published/clustering.js";
import {
  accessFrequency,
  contextPilot,
  cpTree,
  knowledgeTree,
  type ScopePolicy,
} from "../published/published-knowledge.js";

/** The selectable policies: memstem's own, two that use no knowledge of the scope, and the published ones. */
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

/** Batch planners: memstem's own, and ContextPilot's for requests that are all known (Alg. 4 and 5). */
export const BATCH_PLANNERS = ["shared-prefixes", "context-pilot"] as const;
export type BatchPlanner = (typeof BATCH_PLANNERS)[number];
/** Planners of a service's batches: those, and ContextPilot's for online batches, on each scope's live cluster tree (Alg. 2 and 5). */
export const SERVICE_PLANNERS = [...BATCH_PLANNERS, "context-pilot-live"] as const;
export type ServicePlanner = (typeof SERVICE_PLANNERS)[number];
export const DEFAULT_BATCH_PLANNER: BatchPlanner = "shared-prefixes";

const PLANNED_BY: Readonly<Record<BatchPlanner, BatchPlanning>> = {
  "shared-prefixes": sharedPrefixes,
  "context-pilot": clusteredBatch,
};

/** {@link planBatchBy} with a planner selected by name. `context-pilot` plans from an empty cache, whatever is known. */
export function planBatch(
  requests: readonly BatchRequest[],
  planner: BatchPlanner = DEFAULT_BATCH_PLANNER,
  knowledge: readonly KeyKnowledge[] = [],
): PlannedRequest[] {
  return planBatchBy(PLANNED_BY[planner], requests, knowledge);
}
