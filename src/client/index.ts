/*
 * client: a typed client of the HTTP API, on Web APIs alone. Enters: the library's options. Leaves: its answers, or a `MemprefixError`.
 */

export type {
  ComposedPrompt,
  Eviction,
  Feedback,
  FieldIssue,
  Forgetting,
  MessageLike,
  QueryMessage,
} from "../service/base/call-types.js";
export type * from "../service/fields/call-options.js";
export type * from "./batch-types.js";
export { createMemprefixClient, type RemoteMemprefix } from "./client.js";
export * from "./errors.js";
export type { CallControl, ClientOptions } from "./sending.js";
export type * from "./wire-types.js";
