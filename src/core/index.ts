/** `memprefix/core`: composes prompts without I/O. Clock, ids and the token counter come from the caller; state is plain rows. */

export type { BatchRequest, KeyKnowledge, PlannedRequest } from "./batch/batch-plan.js";
export { BlockRegister } from "./blocks/block-register.js";
export * from "./blocks/context-block.js";
export * from "./blocks/dated-memory.js";
export { withoutProviderMemories } from "./blocks/provider-memories.js";
export { recallKnown } from "./blocks/recall.js";
export * from "./cache/cache-report.js";
export { type BlockChain, type CacheReading, CachingEngine, type ObservedBlocks } from "./cache/caching-engine.js";
export { ContextIndex } from "./cache/context-index.js";
export * from "./cache/engine-cache.js";
export type { IndexNode, ServedNode } from "./cache/index-node.js";
export * from "./cache/predicted-cache.js";
export * from "./cache/residency.js";
export type { ByHand } from "./compose/by-hand.js";
export * from "./compose/compose.js";
export { type ComposeInput, PromptTooLongError } from "./compose/compose-input.js";
export * from "./compose/depth.js";
export { draftPrompt } from "./compose/draft.js";
export { MISS_CAUSES, type Miss, type MissCause, reportedMiss } from "./compose/miss.js";
export * from "./compose/plan.js";
export * from "./compose/policies.js";
export { batchKnowledge, type PromptHead, promptHead } from "./compose/prompt-head.js";
export * from "./compose/scope-json.js";
export * from "./compose/scope-state.js";
export * from "./conversation/conversation.js";
export {
  DEFAULT_HISTORY,
  DEFAULT_HISTORY_RATIO,
  EPOCH_REASONS,
  HISTORY_NAMES,
  type HistoryName,
  type HistoryTerms,
  type PromptTokens,
  type WindowTerms,
} from "./conversation/epoch.js";
export {
  possibleSections,
  type RecalledHistory,
  recallHistory,
  standingMemories,
} from "./conversation/history.js";
export * from "./conversation/injecting.js";
export { hasOnlyText } from "./conversation/instructions.js";
export { commonMessages, longestMatch, unnamedHistory } from "./conversation/recognition.js";
export { DEDUPE_NAMES, type DedupeName, exchangeText, lastAsked } from "./conversation/repeats.js";
export { withSpanReferences } from "./conversation/spans.js";
export * from "./conversation/turn-json.js";
export { findWindow, type Window, withCut } from "./conversation/window.js";
export * from "./cost/engine-model.js";
export * from "./cost/engine-work.js";
export * from "./cost/time-law-fit.js";
export { escapeText, unescapeText } from "./escaping/escaping.js";
export { carryOver, MAX_MEMORY_BUDGET_RATIO } from "./ordering/carry-over.js";
export {
  alignTo,
  type CarryAllowance,
  NOTHING_CARRIED,
  type Ordering,
  type OrderingPolicy,
  type OrderingRequest,
  plannedOrder,
  prefixExact,
  RecentRetrievals,
  type RetrievedBlock,
  retrieval,
  type ScopeKnowledge,
  sorted,
} from "./ordering/ordering.js";
export { usablePaths } from "./ordering/prefix-search.js";
export * from "./prompt/prompt.js";
export * from "./prompt/section.js";
export { type KnownTool, type SentTools, type ToolChanges, toolsToSend } from "./prompt/tools.js";
export { type ClusterNode, ClusterTree, contextDistance } from "./published/cluster-tree.js";
export { type ClusteredKey, clusterContexts } from "./published/clustering.js";
export * from "./published/published-knowledge.js";
export {
  type BatchWorker,
  MAX_WORKERS,
  type RoutedPrompt,
  routePrompt,
  routeToWorkers,
  WorkerLoads,
  type WorkerRow,
} from "./routing/worker-routing.js";
export { groupBy, LruMap } from "./text/collections.js";
export * from "./text/ids.js";
export {
  CUT_MARK,
  canonicalText,
  cutText,
  foundTextProblem,
  MAX_MEMORY_CHARACTERS,
  memoryTextProblem,
  unstorable,
  unstorableWithin,
  withoutCut,
} from "./text/memory-text.js";
export * from "./text/message.js";
export * from "./usage/prompt-figures.js";
export * from "./usage/prompt-sums.js";
export * from "./usage/usage-record.js";
