/*
 * client: `memprefix/client`, a typed client of a service's HTTP API, on Web APIs alone: no package, nothing of Node's.
 * Enters: options as the library takes them, in camelCase. Leaves: answers as the library gives them, or a `MemprefixError`.
 * `routes.ts` lists the routes; `sending.ts` has time-outs and errors; names are turned by `http/contracts/wire-names.ts`.
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
