import type { RetrievedBlock } from "../ordering/ordering.js";
import type { Label } from "../text/ids.js";

/** One request of a batch. */
export interface BatchRequest {
  /**
   * Identifies the scope of the labels and the prompt before the blocks: requests share a prefix only if this is equal. For one user's
   * batch: the digest of the prompt before the blocks. For a batch over several users: that and the scope, because labels belong to a
   * scope.
   */
  readonly key: string;
  /** Distinct blocks in relevance order, with the tokens of their lines (whole numbers). */
  readonly blocks: readonly RetrievedBlock[];
  /** Requests of one conversation are executed in the order of the batch. Absent: independent. */
  readonly conversation?: string | undefined;
  /** Higher priorities are executed first; default 0. */
  readonly priority?: number | undefined;
  /** Within one priority, earlier deadlines first, in any unit; absent: after every deadline. */
  readonly deadline?: number | undefined;
}

/** A request with its place in the plan. */
export interface PlannedRequest {
  /** Its index in the batch. */
  readonly request: number;
  /** Its place in the execution order, from 0. */
  readonly rank: number;
  /** Its blocks in prompt order: each exactly once, none carried. */
  readonly order: readonly Label[];
  /**
   * Child positions from the root to the request in the planner's tree; a common prefix of two paths is a common prefix of their prompts.
   * Empty without blocks.
   */
  readonly searchPath: readonly number[];
}

/** A planner's result before priorities, deadlines and conversations are applied. By request index. */
export interface BatchOrder {
  readonly orders: readonly (readonly Label[])[];
  readonly searchPaths: readonly (readonly number[])[];
  /** Request indices in the order that reuses most. */
  readonly sequence: readonly number[];
}

/** A batch's block sets, with blocks renumbered uniquely across keys. */
export interface NumberedBatch {
  /** By request, in relevance order. */
  readonly sets: readonly (readonly number[])[];
  /** By block number. */
  readonly tokensOf: Float64Array;
  /** By block number. */
  readonly labels: readonly Label[];
}

/** Numbers a batch's blocks from 0. Throws if a request lists a block twice. */
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
