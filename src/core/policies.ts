import { accessFrequency } from "./access-frequency-policy.js";
import { carryOver } from "./carry-over.js";
import { contextPilot } from "./context-pilot.js";
import { knowledgeTree } from "./knowledge-tree.js";
import type { OrderingPolicy, PolicyName } from "./ordering.js";
import { prefixExact } from "./prefix-exact.js";
import { retrieval } from "./retrieval.js";
import { sorted } from "./sorted.js";

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
