/**
 * `memstem/core`: composing prompts without I/O. Clock, ids and the token counter come from the caller; state goes in and out as
 * plain rows.
 */
export { type Access, AccessWindow } from "./access-frequency.js";
export { accessFrequency } from "./access-frequency-policy.js";
export * from "./annotations.js";
export * from "./block-register.js";
export * from "./cache-report.js";
export { carryOver } from "./carry-over.js";
export * from "./cluster-node.js";
export { ClusterTree } from "./cluster-tree.js";
export * from "./compose.js";
export * from "./context-block.js";
export { contextDistance } from "./context-distance.js";
export * from "./context-index.js";
export { contextPilot } from "./context-pilot.js";
export * from "./conversation.js";
export * from "./digest.js";
export { groupBy } from "./group-by.js";
export * from "./ids.js";
export * from "./index-node.js";
export * from "./injection.js";
export { knowledgeTree } from "./knowledge-tree.js";
export { MAX_MEMORY_CHARACTERS, memoryTextProblem } from "./memory-text.js";
export * from "./message.js";
export * from "./ordering.js";
export * from "./plan.js";
export { DEFAULT_POLICY, ORDERING_POLICIES } from "./policies.js";
export { prefixExact } from "./prefix-exact.js";
export * from "./prompt.js";
export { recallKnown } from "./recall.js";
export * from "./recent-retrievals.js";
export * from "./rendering.js";
export * from "./residency.js";
export { retrieval } from "./retrieval.js";
export * from "./retrieved-memory.js";
export * from "./scope-state.js";
export { sorted } from "./sorted.js";
export { unstorable, unstorableWithin } from "./storable-text.js";
export * from "./token-counter.js";
export * from "./turn.js";
export type { Warning } from "./warning.js";
