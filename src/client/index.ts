/*
 * client: `memstem/client`, a typed client of a service's HTTP API, on Web APIs alone: no package, nothing of Node's.
 * Enters: options as the library takes them, in camelCase. Leaves: answers as the library gives them, or a typed error.
 * `routes.ts` lists the routes; `wire-names.ts` turns names; `sending.ts` has time-outs and tries.
 */

export type { Eviction, Feedback, Forgetting } from "../service/base/answers.js";
export type {
  AddOptions,
  ComposeOptions,
  EvictOptions,
  FeedbackOptions,
  ForgetMemoryOptions,
  ForgetUserOptions,
  MessageLike,
} from "../service/base/call-options.js";
export type { FieldIssue } from "../service/base/field-issue.js";
export type { ComposedPrompt, QueryMessage } from "../service/compose/composed-prompt.js";
export type {
  BatchAnswers,
  BatchComposeOptions,
  BatchCounts,
  BatchLine,
  BatchLineOptions,
  BatchProblem,
  BatchPrompt,
  DescribedIndex,
  ExplainedPrompt,
  ExplainRequestOptions,
  ExportedData,
  Health,
  IndexOptions,
  WholeBatchOptions,
} from "./answers.js";
export { createMemstemClient, type RemoteMemstem } from "./client.js";
export type { CallControl, ClientOptions } from "./connection.js";
export {
  ClosedError,
  DeletedMeanwhileError,
  InvalidRequestError,
  MemorySourceError,
  MemstemConnectionError,
  MemstemHttpError,
  MemstemTimeoutError,
  NotFoundError,
  type Problem,
  type Refusal,
} from "./errors.js";
export type {
  UsageAlerts,
  UsageConversation,
  UsageConversationOptions,
  UsageConversations,
  UsageConversationsOptions,
  UsageEvent,
  UsageEventsOptions,
  UsageFigures,
  UsageFilterOptions,
  UsageMisses,
  UsageNote,
  UsageNoteOptions,
  UsageRequest,
  UsageRequests,
  UsageRequestsOptions,
  UsageReuse,
  UsageReuseOptions,
  UsageSummary,
  UsageUsers,
  UsageViewOptions,
} from "./usage-answers.js";
export type { UsageRow } from "./usage-row.js";
