import type { ServicePlanner } from "../core/index.js";
import type { ComposedPrompt, MessageLike, QueryMessage } from "../service/base/call-types.js";
import type { ComposeOptions } from "../service/fields/call-options.js";
import type { Problem } from "./errors.js";
import type { BatchCounts } from "./wire-types.js";

/*
 * Batches: what their routes take and give, with the messages in the type they were given in.
 */

/** One request of a batch. Workers are named for all of them. */
export type BatchComposeOptions<M extends MessageLike = MessageLike> = Omit<ComposeOptions<M>, "workers" | "dryRun"> & {
  /** Higher priorities first. Default: 0. */
  readonly priority?: number | null | undefined;
  /** Within a priority, earliest deadline first; any unit. Absent: last. */
  readonly deadline?: number | null | undefined;
};

/** Who orders a batch's blocks and requests: memprefix (default), ContextPilot's Alg. 4 and 5, or its Alg. 2 and 5 on live trees. */
export type BatchPlannerName = ServicePlanner;

/** A batch: at most 10,000 requests, of any users. */
export interface WholeBatchOptions<M extends MessageLike = MessageLike> {
  readonly requests: readonly BatchComposeOptions<M>[];
  /** Engine replicas with their own prefix cache, by name. */
  readonly workers?: readonly string[] | null | undefined;
  readonly planner?: BatchPlannerName | null | undefined;
}

/** How a batch of lines is planned. */
export interface BatchLineOptions {
  /** Requests planned together. */
  readonly window?: number | undefined;
  /** Engine replicas with their own prefix cache, by name; no name may have a comma. */
  readonly workers?: readonly string[] | undefined;
  readonly planner?: BatchPlannerName | undefined;
}

/** A composed prompt of a batch. */
export interface BatchPrompt<M extends MessageLike = QueryMessage> {
  /** The request's position in the batch, from 0. */
  readonly index: number;
  /** The prompt's position in the order of sending, from 0. */
  readonly rank: number;
  /** The worker to send it to; null: no workers were named. */
  readonly worker: string | null;
  readonly answer: ComposedPrompt<M>;
}

/** Why a request of a batch has no prompt. */
export interface BatchProblem {
  readonly index: number;
  readonly problem: Problem;
}

/** A batch's answers, in the order of sending. */
export interface BatchAnswers<M extends MessageLike = QueryMessage> {
  readonly answers: readonly (BatchPrompt<M> | BatchProblem)[];
  readonly end: BatchCounts;
}

/** One line of a streamed batch: an answer, progress, or, as the last, the final counts. */
export type BatchLine<M extends MessageLike = QueryMessage> =
  | BatchPrompt<M>
  | BatchProblem
  | { readonly progress: BatchCounts }
  | { readonly end: BatchCounts };
