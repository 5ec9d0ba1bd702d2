import type { BatchPlanner } from "../core/index.js";
import type { ComposedPrompt, MessageLike, QueryMessage } from "../service/base/call-types.js";
import type { ComposeOptions } from "../service/fields/call-options.js";
import type { Problem } from "./errors.js";
import type { BatchCounts } from "./wire-types.js";

/* Requests and answers of batches. Messages keep the type they came in. */

export type BatchComposeOptions<M extends MessageLike = MessageLike> = Omit<ComposeOptions<M>, "workers" | "dryRun">;

/** At most 10,000 requests, of any users. */
export interface WholeBatchOptions<M extends MessageLike = MessageLike> {
  readonly requests: readonly BatchComposeOptions<M>[];
  /** Names of engine replicas, each with its own prefix cache. */
  readonly workers?: readonly string[] | null | undefined;
  /** memprefix's planner (default), or ContextPilot's: Alg. 4 and 5, or Alg. 2 and 5 on a user's tree. */
  readonly planner?: BatchPlanner | null | undefined;
  /** The prompts are not sent to an engine: they only teach later orders. */
  readonly warmStart?: boolean | null | undefined;
}

/** A composed prompt: `index` is its request's position, `rank` its own in the order of sending, both from 0. */
export interface BatchPrompt<M extends MessageLike = QueryMessage> {
  readonly index: number;
  readonly rank: number;
  /** Null: no workers were named. */
  readonly worker: string | null;
  readonly answer: ComposedPrompt<M>;
}

export interface BatchProblem {
  readonly index: number;
  readonly problem: Problem;
}

/** In the order of sending. */
export interface BatchAnswers<M extends MessageLike = QueryMessage> {
  readonly answers: readonly (BatchPrompt<M> | BatchProblem)[];
  readonly end: BatchCounts;
}
