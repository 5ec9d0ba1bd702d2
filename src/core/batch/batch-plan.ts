/* batch: plans requests that are all known beforehand. Enters: blocks, cached sequences. Leaves: block orders, an execution order. */

import type { RetrievedBlock } from "../ordering/ordering.js";
import { groupBy, keptIn } from "../text/collections.js";
import type { Label } from "../text/ids.js";

export interface BatchRequest {
  /** Requests share a prefix only if their keys are equal: a digest of the prompt before the blocks and, across users, of the scope. */
  readonly key: string;
  /** Distinct, in relevance order; tokens are whole numbers. */
  readonly blocks: readonly RetrievedBlock[];
  /** Requests of one conversation are executed in the order of the batch. */
  readonly conversation?: string | undefined;
}

/** What is known about the requests with one key before the batch. */
export interface KeyKnowledge {
  readonly key: string;
  /** Block sequences that should be cached after the key's bytes, least recently used first. */
  readonly cached: readonly (readonly Label[])[];
  readonly recent: readonly (readonly Label[])[];
}

export interface PlannedRequest {
  readonly request: number;
  readonly rank: number;
  /** Each block exactly once, none carried. */
  readonly order: readonly Label[];
  /** How many leading blocks of `order` other requests share. The rest may be reordered. */
  readonly shared: number;
  /** Child positions from the root of the planner's tree: a common prefix of two paths is a common prefix of their prompts. */
  readonly searchPath: readonly number[];
}

/** A planner's result, by request index, before conversations are applied. */
export interface BatchOrder {
  readonly orders: readonly (readonly Label[])[];
  readonly shared: readonly number[];
  readonly searchPaths: readonly (readonly number[])[];
  /** Request indices in the order that reuses most. */
  readonly sequence: readonly number[];
}

export interface KeyGroup {
  readonly requests: readonly number[];
  /** As in {@link KeyKnowledge}, without blocks that no request of the group has. */
  readonly cached: readonly (readonly number[])[];
  readonly recent: readonly (readonly number[])[];
}

/** A batch with blocks renumbered uniquely across keys. `sets` is by request, the other arrays by block number. */
export interface NumberedBatch {
  readonly sets: readonly (readonly number[])[];
  readonly tokensOf: Float64Array;
  readonly labels: readonly Label[];
  readonly groups: readonly KeyGroup[];
}

/** Numbers a batch's blocks from 0. Throws if a request lists a block twice. */
export function numbered(requests: readonly BatchRequest[], knowledge: readonly KeyKnowledge[]): NumberedBatch {
  const numbersOf = new Map<string, Map<Label, number>>();
  const labels: Label[] = [];
  const tokens: number[] = [];
  const sets = requests.map(({ key, blocks }) => {
    const numbers = keptIn(numbersOf, key, () => new Map());
    const set = blocks.map((block) =>
      keptIn(numbers, block.label, () => {
        labels.push(block.label);
        return tokens.push(block.tokens) - 1;
      }),
    );
    if (new Set(set).size !== set.length) throw new Error("a request lists a block twice");
    return set;
  });
  const knownOf = new Map(knowledge.map((known) => [known.key, known]));
  const groups = [...groupBy(requests.keys(), (request) => requests[request]?.key ?? "")].map(([key, ofKey]) => {
    const { cached = [], recent = [] } = knownOf.get(key) ?? {};
    const numbers = numbersOf.get(key) ?? new Map<Label, number>();
    return {
      requests: ofKey,
      cached: cached.map((sequence) => leadingNumbers(sequence, numbers)).filter(({ length }) => length > 0),
      recent: recent.map((set) => set.flatMap((label) => numbers.get(label) ?? [])),
    };
  });
  return { sets, tokensOf: Float64Array.from(tokens), labels, groups };
}

function leadingNumbers(sequence: readonly Label[], numbers: ReadonlyMap<Label, number>): number[] {
  const leading: number[] = [];
  for (const label of sequence) {
    const number = numbers.get(label);
    if (number === undefined) break;
    leading.push(number);
  }
  return leading;
}

/** Keeps a sequence of request indices, but turns of a conversation keep the batch's order: an early one runs right after the turn before it. */
export function turnsInOrder(
  sequence: readonly number[],
  requests: readonly Pick<BatchRequest, "conversation">[],
): number[] {
  const turnsOf = groupBy(requests.keys(), (request) => requests[request]?.conversation);
  const reached = new Set<number>();
  return sequence.flatMap((request) => {
    const conversation = requests[request]?.conversation;
    if (conversation === undefined) return [request];
    reached.add(request);
    const turns = turnsOf.get(conversation) ?? [];
    const next = turns.findIndex((turn) => !reached.has(turn));
    return turns.splice(0, next < 0 ? turns.length : next);
  });
}
