import type { progress } from "../http/contracts/batch-contract.js";
import type { explainResult } from "../http/contracts/explain-contract.js";
import type { health } from "../http/contracts/health-contract.js";
import type * as usage from "../http/contracts/usage-contract.js";
import type * as user from "../http/contracts/user-contract.js";
import type { AnswerOf, OptionsOf } from "../http/contracts/wire-form.js";

/*
 * What routes take and give that the library does not have, by the contracts of HTTP. Where it has them, the types are the library's. The
 * build writes these types out (`.ci/plain-types.ts`), so that the client's need no package.
 *
 * Times are milliseconds since the epoch. Tokens are memprefix's estimates, but for those that begin with `reported`: they are the engine's
 * own count, and null where it did not report.
 */

/** Requests of a batch so far, by step. */
export type BatchCounts = AnswerOf<typeof progress>;

/** Whose request to explain. */
export type ExplainRequestOptions = OptionsOf<typeof usage.usageRequestQuery>;

/** What a prompt missed, why, and which earlier prompt it continued; `words` says the same as sentences. */
export type ExplainedPrompt = AnswerOf<typeof explainResult>;

/** Whose context index to describe. */
export type IndexOptions = OptionsOf<typeof user.userIndexQuery>;

/** The context index of one user and agent. */
export type DescribedIndex = AnswerOf<typeof user.indexResult>;

/** Everything stored on a user, for every agent. Rows have the database's names. */
export type ExportedData = AnswerOf<typeof user.exportResult>;

/** The service's state. */
export type Health = AnswerOf<typeof health>;

/** A window and its prompts. */
export type UsageViewOptions = OptionsOf<typeof usage.usageSummaryQuery>;

/** Which prompts are looked at; absent: all. */
export type UsageFilterOptions = Omit<UsageViewOptions, "window">;

/** Which prompts a list has. */
export type UsageRequestsOptions = OptionsOf<typeof usage.usageRequestsQuery>;

/** Sums over prompts. */
export type UsageFigures = AnswerOf<typeof usage.usageSums>;

/** One answered prompt. */
export type UsageRow = AnswerOf<typeof usage.usageRow>;

/** A window's figures. */
export type UsageSummary = AnswerOf<typeof usage.usageSummaryResult>;

/** A page of prompts, newest first. */
export type UsageRequests = AnswerOf<typeof usage.usageRequestsResult>;

/** A prompt beside the one that it continued. */
export type UsageRequest = AnswerOf<typeof usage.usageRequestResult>;
