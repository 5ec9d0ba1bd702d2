import { groupBy } from "../text/lists.js";

/** What of a request decides when it may be executed; see `BatchRequest`. */
export interface Urgency {
  readonly conversation?: string | undefined;
  readonly priority?: number | undefined;
  readonly deadline?: number | undefined;
}

/**
 * Puts a cache-friendly sequence (Alg. 5's or ours) under priorities, deadlines and conversations. Requests of one priority and one
 * deadline are a class; classes are executed one after the other, higher priorities first, then earlier deadlines, and within a class
 * the sequence stays. A deadline says what goes first, not that it will be met. A conversation's requests keep the order of their
 * indices: an earlier turn is as urgent as the most urgent turn that waits for it, and a turn that the sequence has before an earlier one
 * waits and is executed right behind it. Takes and returns request indices; O(N log N).
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

/** Negative where `a` is more urgent. */
function compareUrgency(a: Urgency, b: Urgency): number {
  const [first, second] = [a.priority ?? 0, b.priority ?? 0];
  if (first !== second) return second - first;
  const [sooner, later] = [a.deadline ?? Number.POSITIVE_INFINITY, b.deadline ?? Number.POSITIVE_INFINITY];
  return sooner === later ? 0 : sooner - later;
}

/** Each request's urgency, or that of the most urgent later turn of its conversation. */
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

/** Of each request, the next turn of its conversation, and whether it has no earlier one. */
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
