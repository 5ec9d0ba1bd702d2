/*
 * batch: planning requests that are all known before the first is executed.
 * Enters: each request's blocks, priority, deadline and conversation; what should be cached already. Leaves: an order of blocks per
 * request, and an execution order of the requests. What is cached enters as plain data: nothing here reads a scope's state.
 */

import type { RetrievedBlock } from "../ordering/ordering.js";
import { groupBy, keptIn } from "../text/collections.js";
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

/** What is known about the requests with one key before the batch. Plain data, so that planning can run elsewhere. */
export interface KeyKnowledge {
  readonly key: string;
  /**
   * Sequences of blocks that should be cached after the key's bytes, least recently used first. A block that a request does not have ends
   * what the request can use of a sequence. See `ContextIndex.usable`.
   */
  readonly cached: readonly (readonly Label[])[];
  /** Block sets of the scope's recent requests, oldest first; the last {@link RECENT_REQUESTS} count. */
  readonly recent: readonly (readonly Label[])[];
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
   * How many leading blocks of `order` the plan relies on, because other requests share them. The rest may be ordered otherwise; with 0 all
   * of it, as for a request of its own.
   */
  readonly shared: number;
  /**
   * Child positions from the root to the request in the planner's tree; a common prefix of two paths is a common prefix of their prompts.
   * Empty without blocks.
   */
  readonly searchPath: readonly number[];
}

/** A planner's result before priorities, deadlines and conversations are applied. By request index. */
export interface BatchOrder {
  readonly orders: readonly (readonly Label[])[];
  readonly shared: readonly number[];
  readonly searchPaths: readonly (readonly number[])[];
  /** Request indices in the order that reuses most. */
  readonly sequence: readonly number[];
}

/** The requests with one key, and what is known about them, with blocks renumbered. */
export interface KeyGroup {
  /** Request indices, ascending. */
  readonly requests: readonly number[];
  /** As in {@link KeyKnowledge}; each sequence up to the first block that no request of the group has. */
  readonly cached: readonly (readonly number[])[];
  /** As in {@link KeyKnowledge}; without blocks that no request of the group has. */
  readonly recent: readonly (readonly number[])[];
}

/** A batch's block sets, with blocks renumbered uniquely across keys. */
export interface NumberedBatch {
  /** By request, in relevance order. */
  readonly sets: readonly (readonly number[])[];
  /** By block number. */
  readonly tokensOf: Float64Array;
  /** By block number. */
  readonly labels: readonly Label[];
  /** In the order of their earliest requests. */
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

/** What of a request constrains when it is executed. */
export type Urgency = Pick<BatchRequest, "conversation" | "priority" | "deadline">;

/**
 * Applies priorities, deadlines and conversations to a cache-friendly sequence (of Alg. 5 or memprefix's own). Requests with the same
 * priority and deadline form a class. Classes are executed one after the other: higher priorities first, then earlier deadlines; within a
 * class the sequence is kept. A deadline decides order only; it may be missed. A conversation's requests keep the order of their indices:
 * an earlier turn inherits the urgency of the most urgent later turn, and a turn that the sequence places before an earlier one is executed
 * right after it. Takes and returns request indices; O(N log N).
 */
export function underUrgency(sequence: readonly number[], requests: readonly Urgency[]): number[] {
  const urgency = inherited(requests);
  const byClass = sequence.toSorted((a, b) => compareUrgency(urgency[a] ?? {}, urgency[b] ?? {}));
  const { next, isFirst } = turnOrder(requests);
  const mayRun = Uint8Array.from(isFirst, Number);
  const waiting = new Set<number>();
  const executed: number[] = [];
  for (const request of byClass) {
    if (mayRun[request] === 0) {
      waiting.add(request);
      continue;
    }
    for (let turn = request; ; ) {
      executed.push(turn);
      const following = next[turn] ?? null;
      if (following === null) break;
      mayRun[following] = 1;
      if (!waiting.delete(following)) break;
      turn = following;
    }
  }
  return executed;
}

/** Negative if `a` is more urgent. */
function compareUrgency(a: Urgency, b: Urgency): number {
  const [first, second] = [a.priority ?? 0, b.priority ?? 0];
  if (first !== second) return second - first;
  const [sooner, later] = [a.deadline ?? Number.POSITIVE_INFINITY, b.deadline ?? Number.POSITIVE_INFINITY];
  return sooner === later ? 0 : sooner - later;
}

/** Each request's urgency, or that of the most urgent later turn of its conversation if higher. */
function inherited(requests: readonly Urgency[]): Urgency[] {
  const latest = new Map<string, Urgency>();
  return requests
    .toReversed()
    .map((request) => {
      if (request.conversation === undefined) return request;
      const later = latest.get(request.conversation);
      const urgency = later !== undefined && compareUrgency(later, request) < 0 ? later : request;
      latest.set(request.conversation, urgency);
      return urgency;
    })
    .reverse();
}

/** For each request: the next turn of its conversation, and whether it is the first. */
function turnOrder(requests: readonly Urgency[]): { next: (number | null)[]; isFirst: boolean[] } {
  const next: (number | null)[] = requests.map(() => null);
  const isFirst = requests.map(() => true);
  const spoken = [...requests.keys()].filter((at) => requests[at]?.conversation !== undefined);
  for (const turns of groupBy(spoken, (at) => requests[at]?.conversation).values()) {
    for (const [nth, turn] of turns.entries()) {
      next[turn] = turns[nth + 1] ?? null;
      isFirst[turn] = nth === 0;
    }
  }
  return { next, isFirst };
}
