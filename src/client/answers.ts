import type { AgentId, Explanation, IndexEntry, RequestId, UserId } from "../core/index.js";
import type { ComposeOptions, MessageLike } from "../service/base/call-options.js";
import type { ComposedPrompt, QueryMessage } from "../service/compose/composed-prompt.js";
import type { Problem } from "./errors.js";
import type { UsageRow } from "./usage-row.js";

/*
 * What routes take and give that the library does not have. Where it has them, the types are the library's.
 */

/** One request of a batch. Workers are named for all of them. */
export type BatchComposeOptions<M extends MessageLike = MessageLike> = Omit<
  ComposeOptions<M>,
  "workers" | "dryRun" | "recordUsage"
> & {
  /** Higher priorities first. Default: 0. */
  readonly priority?: number | null | undefined;
  /** Within a priority, earliest deadline first; any unit. Absent: last. */
  readonly deadline?: number | null | undefined;
};

/** A batch: at most 10,000 requests, of any users. */
export interface WholeBatchOptions<M extends MessageLike = MessageLike> {
  readonly requests: readonly BatchComposeOptions<M>[];
  /** Engine replicas with their own prefix cache, by name. */
  readonly workers?: readonly string[] | null | undefined;
}

/** How a batch of lines is planned. */
export interface BatchLineOptions {
  /** Requests planned together. */
  readonly window?: number | undefined;
  /** Engine replicas with their own prefix cache, by name; no name may have a comma. */
  readonly workers?: readonly string[] | undefined;
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

/** Requests of a batch so far, by step. */
export interface BatchCounts {
  readonly read: number;
  /** Requests whose memory search ended. */
  readonly found: number;
  readonly composed: number;
  readonly failed: number;
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

/** Whose request to explain. */
export interface ExplainRequestOptions {
  readonly userId: string;
  /** The agent that it was composed for. */
  readonly agentId?: string | null | undefined;
  readonly requestId: string;
}

/** Why a prompt hit the prefix cache as far as it did; `explanation` has the findings as sentences. */
export type ExplainedPrompt = Explanation & { readonly explanation: readonly string[] };

/** Whose context index to describe. */
export interface IndexOptions {
  readonly userId: string;
  /** The agent whose index; absent: the user's own. */
  readonly agentId?: string | null | undefined;
  /** Most nodes in the answer, at most 10,000. Default: 1,000. */
  readonly limit?: number | undefined;
}

/** The context index of one user and agent. */
export interface DescribedIndex {
  readonly userId: UserId;
  readonly agentId: AgentId | null;
  readonly counts: {
    readonly blocks: number;
    readonly nodes: number;
    readonly conversations: number;
    readonly turns: number;
    readonly requests: number;
  };
  /** Parents before children. */
  readonly nodes: readonly (Omit<IndexEntry, "id"> & {
    /** Whether the engine's cache should still hold it, by the configured TTL. */
    readonly isExpected: boolean;
    readonly requestIds: readonly RequestId[];
  })[];
}

/** A row of the service's database, under its column names. */
type Row = Readonly<Record<string, unknown>>;

/** Everything stored on a user, for every agent. */
export interface ExportedData {
  readonly userId: UserId;
  readonly scopes: readonly {
    readonly agentId: string | null;
    readonly scope: Row;
    /** Rows, by table. */
    readonly tables: Readonly<Record<string, readonly Row[]>>;
  }[];
  /** What was recorded of the user's prompts, oldest first. */
  readonly usage: readonly UsageRow[];
  /** Ids of memories that are never sent again. */
  readonly forgottenMemories: readonly string[];
  /** Null: no memory source is configured. */
  readonly source: {
    readonly name: string;
    /** Null: another system owns the memories; export them there. */
    readonly memories:
      | readonly {
          readonly id: string;
          readonly memory: string;
          readonly agentId: string | null;
          readonly metadata: Row;
          readonly createdAt: string | null;
          readonly updatedAt: string | null;
        }[]
      | null;
  } | null;
}

/** The service's state. */
export interface Health {
  readonly status: "ok" | "degraded" | "stopping";
  readonly version: string;
  /** The memory source's name; null: none is configured. */
  readonly source: string | null;
  /** What failed when it was last asked; absent: nothing. `since`: milliseconds since the epoch. */
  readonly degraded?: readonly { readonly part: string; readonly reason: string; readonly since: number }[];
}
