/**
 * `memstem/core`: composing prompts without I/O. Clock, ids and the token counter come from the caller; state goes in and out as
 * plain rows.
 */
export * from "./annotations.js";
export * from "./block-register.js";
export * from "./compose.js";
export * from "./context-block.js";
export * from "./context-index.js";
export * from "./conversation.js";
export * from "./digest.js";
export { groupBy } from "./group-by.js";
export * from "./ids.js";
export * from "./index-node.js";
export * from "./injection.js";
export { MAX_MEMORY_CHARACTERS, memoryTextProblem } from "./memory-text.js";
export * from "./message.js";
export * from "./ordering.js";
export * from "./plan.js";
export { prefixExact } from "./prefix-exact.js";
export * from "./prompt.js";
export { recallKnown } from "./recall.js";
export * from "./rendering.js";
export * from "./retrieved-memory.js";
export * from "./scope-state.js";
export { unstorable, unstorableWithin } from "./storable-text.js";
export * from "./token-counter.js";
export * from "./turn.js";
export type { Warning } from "./warning.js";
