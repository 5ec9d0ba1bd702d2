import { carryOver } from "../ordering/carry-over.js";
import type { OrderingPolicy, PolicyName } from "../ordering/ordering.js";
import { prefixExact } from "../ordering/prefix-exact.js";
import { retrieval } from "../ordering/retrieval.js";
import { sorted } from "../ordering/sorted.js";
import { accessFrequency } from "../published/access-frequency-policy.js";
import { contextPilot } from "../published/context-pilot.js";
import { knowledgeTree } from "../published/knowledge-tree.js";

/** Every policy that a caller can name: ours, and the published ones that ours are measured against. */
export const ORDERING_POLICIES: Readonly<Record<PolicyName, OrderingPolicy>> = {
  "prefix-exact": prefixExact,
  "carry-over": carryOver,
  retrieval,
  sorted,
  "context-pilot": contextPilot,
  "knowledge-tree": knowledgeTree,
  "access-frequency": accessFrequency,
};

/** The best that sends exactly the blocks that were retrieved. */
export const DEFAULT_POLICY: PolicyName = "prefix-exact";
