/**
 * `memstem/core`: composing prompts without I/O. Clock, ids and the token counter come from the caller; state goes in and out as
 * plain rows.
 */

export { type Access, AccessWindow } from "./access-frequency.js";
export { accessFrequency } from "./access-frequency-policy.js";
export { alignTo } from "./alignment.js";
export * from "./annotations.js";
export { BATCH_PLANNERS, type BatchPlanner, planBatch } from "./batch-plan.js";
export type { BatchRequest, PlannedRequest } from "./batch-request.js";
export * from "./block-register.js";
export * from "./cache-report.js";
export { carryOver } from "./carry-over.js";
export * from "./cluster-node.js";
export { ClusterTree } from "./cluster-tree.js";
export { type ClusteredRows, clusterContexts, type TicketedContext } from "./clustering.js";
export * from "./compose.js";
export * from "./composed-prompt.js";
export { MAX_MARKERS, markerProblem } from "./configured-marker.js";
export * from "./context-block.js";
export { contextDistance } from "./context-distance.js";
export * from "./context-index.js";
export { contextPilot } from "./context-pilot.js";
export * from "./conversation.js";
export { CUT_MARK, cutText } from "./cut-text.js";
export * from "./depth.js";
export * from "./digest.js";
export * from "./draft.js";
export * from "./engine-model.js";
export {
  BY_LIST,
  BY_SHAPES,
  type Escaping,
  escapeText,
  unescapeText,
} from "./escaping.js";
export { explain } from "./explain.js";
export type * from "./explanation.js";
export { explanationText } from "./explanation-text.js";
export { type EntropyBounds, entropyBounds, VOCABULARY_TOKENS } from "./first-token-entropy.js";
export { groupBy } from "./group-by.js";
export * from "./ids.js";
export * from "./index-node.js";
export * from "./injection.js";
export { knowledgeTree } from "./knowledge-tree.js";
export { MAX_MEMORY_BUDGET_RATIO } from "./memory-bank.js";
export { foundTextProblem, MAX_MEMORY_CHARACTERS, memoryTextProblem } from "./memory-text.js";
export * from "./message.js";
export * from "./message-meaning.js";
export { meaningDigest } from "./message-meaning.js";
export type { MissCause } from "./miss-cause.js";
export * from "./ordering.js";
export * from "./plan.js";
export { plannedOrder } from "./planned-order.js";
export { DEFAULT_POLICY, ORDERING_POLICIES } from "./policies.js";
export { prefixExact } from "./prefix-exact.js";
export * from "./prompt.js";
export { type PromptHead, promptHead } from "./prompt-head.js";
export { comparableText, QuoteSearch } from "./quote-search.js";
export { recallKnown } from "./recall.js";
export * from "./recent-retrievals.js";
export * from "./rendering.js";
export * from "./residency.js";
export type { RestatedTurn } from "./restated-turns.js";
export * from "./retention.js";
export { retrieval } from "./retrieval.js";
export * from "./retrieved-memory.js";
export * from "./scope-state.js";
export { withoutSections } from "./section-scan.js";
export * from "./slot-choice.js";
export { sorted } from "./sorted.js";
export { unstorable, unstorableWithin } from "./storable-text.js";
export * from "./stored-block.js";
export * from "./time-law-fit.js";
export * from "./token-counter.js";
export * from "./turn.js";
export type { Warning } from "./warning.js";
export { MAX_WORKERS, type WorkerRow } from "./worker-blocks.js";
export * from "./worker-routing.js";
