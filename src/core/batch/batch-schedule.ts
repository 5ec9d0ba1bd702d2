import { groupBy } from "../text/lists.js";

/** The fields of a `BatchRequest` that constrain when it is executed. */
export interface Urgency {
  readonly conversation?: string | undefined;
  readonly priority?: number | undefined;
  readonly deadline?: number | undefined;
}

/**
 * Applies priorities, deadlines and conversations to a cache-friendly sequence (of Alg. 5 or memstem's own). Requests with the same
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
