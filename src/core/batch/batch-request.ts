import type { RetrievedBlock } from "../ordering/ordering.js";
import type { Label } from "../text/ids.js";

/** One of the requests that are all known before the first is executed. */
export interface BatchRequest {
  /**
   * What the blocks' labels belong to, and what stands before the blocks: requests share a prefix only where this is equal. Within one
   * user's scope the digest of what stands before the blocks; in a batch over several users that and the scope, as labels are a
   * scope's own.
   */
  readonly key: string;
  /** Distinct blocks in relevance order, with the tokens of their lines (whole numbers). */
  readonly blocks: readonly RetrievedBlock[];
  /** Requests with the same conversation are executed in the order in which they stand in the batch. Absent: on its own. */
  readonly conversation?: string | undefined;
  /** Higher ones are executed before lower ones; 0 where absent. */
  readonly priority?: number | undefined;
  /** Of one priority the earlier deadline first, in whatever unit the caller has; absent: after all that have one. */
  readonly deadline?: number | undefined;
}

/** A request as it is to be executed. */
export interface PlannedRequest {
  /** Its index in the batch. */
  readonly request: number;
  /** When it is executed, from 0. */
  readonly rank: number;
  /** Its blocks in prompt order: each exactly once, none carried. */
  readonly order: readonly Label[];
  /** Child positions from the root to the request's place in the planner's tree; requests that begin alike have paths that do. Empty without blocks. */
  readonly searchPath: readonly number[];
}

/** What a planner makes of a batch, before priorities and conversations are looked at. All by request index. */
export interface BatchOrder {
  readonly orders: readonly (readonly Label[])[];
  readonly searchPaths: readonly (readonly number[])[];
  /** Request indices in the order in which they reuse most. */
  readonly sequence: readonly number[];
}

/** Block sets of a batch over numbers that are unique across keys. */
export interface NumberedBatch {
  /** By request, in relevance order. */
  readonly sets: readonly (readonly number[])[];
  /** By block number. */
  readonly tokensOf: Float64Array;
  /** By block number. */
  readonly labels: readonly Label[];
}

/** Numbers a batch's blocks from 0. Throws for a request that lists a block twice. */
export function numbered(requests: readonly BatchRequest[]): NumberedBatch {
  const known = new Map<string, Map<Label, number>>();
  const labels: Label[] = [];
  const tokens: number[] = [];
  const sets = requests.map(({ key, blocks }) => {
    const numbers = known.get(key) ?? new Map<Label, number>();
    known.set(key, numbers);
    const set = blocks.map((block) => {
      const number = numbers.get(block.label) ?? labels.length;
      if (number === labels.length) {
        numbers.set(block.label, number);
        labels.push(block.label);
        tokens.push(block.tokens);
      }
      return number;
    });
    if (new Set(set).size !== set.length) throw new Error("a request lists a block twice");
    return set;
  });
  return { sets, tokensOf: Float64Array.from(tokens), labels };
}
