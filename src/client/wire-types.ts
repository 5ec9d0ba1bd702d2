import type { batchResult } from "../http/contracts/batch-contract.js";
import type { explainResult } from "../http/contracts/explain-contract.js";
import type { health } from "../http/contracts/health-contract.js";
import type * as usage from "../http/contracts/usage-contract.js";
import type * as user from "../http/contracts/user-contract.js";
import type { AnswerOf, OptionsOf } from "../http/contracts/wire-form.js";

/*
 * Types of routes that the library does not have, by HTTP's contracts. `.ci/plain-types.ts` writes them out at build time, so that the
 * client's types need no package. Times are milliseconds since the epoch. Tokens are memprefix's estimates, except fields that begin with
 * `reported`: the engine's count, null where it reported none.
 */

/** Requests of a batch, by step. */
export type BatchCounts = AnswerOf<typeof batchResult>["end"];

export type ExplainRequestOptions = OptionsOf<typeof usage.usageRequestQuery>;

/** What a prompt missed, why, and which prompt it continued; `words`: the same in sentences. */
export type ExplainedPrompt = AnswerOf<typeof explainResult>;

/** Everything stored on a user, for every agent. Rows have the database's column names. */
export type ExportedData = AnswerOf<typeof user.exportResult>;

export type Health = AnswerOf<typeof health>;

export type UsageViewOptions = OptionsOf<typeof usage.usageSummaryQuery>;

export type UsageFilterOptions = Omit<UsageViewOptions, "window">;

export type UsageRequestsOptions = OptionsOf<typeof usage.usageRequestsQuery>;

export type UsageFigures = AnswerOf<typeof usage.usageSums>;

export type UsageRow = AnswerOf<typeof usage.usageRow>;

export type UsageSummary = AnswerOf<typeof usage.usageSummaryResult>;

export type UsageRequests = AnswerOf<typeof usage.usageRequestsResult>;

export type UsageRequest = AnswerOf<typeof usage.usageRequestResult>;
