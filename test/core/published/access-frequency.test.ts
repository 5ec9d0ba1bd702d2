import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Access, AccessWindow, WINDOW_REQUESTS } from "../../../src/core/published/access-frequency.js";
import type { Label, TurnId } from "../../../src/core/text/ids.js";
import { label, labels } from "../context-index/served-sequences.js";
import { anyContext, prefixesOf, ticket } from "./clustered-contexts.js";

type Step =
  | { readonly kind: "take"; readonly context: readonly Label[] }
  | { readonly kind: "forget"; readonly labels: readonly Label[] };

const anySteps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("take" as const), context: anyContext }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("forget" as const),
        labels: fc.uniqueArray(fc.integer({ min: 1, max: 9 }).map(label), { minLength: 1, maxLength: 2 }),
      }),
    },
  ),
  { maxLength: 25, size: "max" },
);

/** An access window with a store under it. */
class StoredWindow {
  readonly rows = new Map<TurnId, Access>();
  #turns = 0;

  constructor(public window = new AccessWindow([])) {}

  take(step: Step): void {
    if (step.kind === "forget") this.window.forget(new Set(step.labels));
    else this.window.take(this.window.alongPrefixes(step.context), ticket(++this.#turns));
    const { upserted, removed } = structuredClone(this.window.drain());
    expect(removed.filter((turn) => upserted.some((row) => row.turn === turn))).toEqual([]);
    for (const turn of removed) this.rows.delete(turn);
    for (const row of upserted) this.rows.set(row.turn, row);
  }

  reload(): void {
    this.window = new AccessWindow(structuredClone([...this.rows.values()]).reverse());
  }
}

function windowAfter(...contexts: readonly (readonly number[])[]): AccessWindow {
  const window = new AccessWindow([]);
  for (const [at, context] of contexts.entries()) window.take(labels(...context), ticket(at + 1));
  return window;
}

describe("access window (CRAFT)", () => {
  it("counts the requests that accessed a block", () => {
    const window = windowAfter([1, 2], [2, 3], [2]);
    expect([1, 2, 3, 4].map((n) => window.countOf(label(n)))).toEqual([1, 3, 1, 0]);
  });

  it("promotes from the front, up to the first block that was accessed once only", () => {
    expect(prefixesOf(windowAfter([1, 2, 3], [1, 3, 4, 2]))).toEqual([[1, 3]]);
    expect(prefixesOf(windowAfter([1, 2], [9, 1, 2]))).toEqual([]);
  });

  it("orders along the promoted prefixes, by counts at each node, then the rest by counts, ties in relevance order", () => {
    const window = windowAfter([1, 2], [1, 2], [3, 4], [3, 4], [3, 4], [7], [7], [7], [7], [8]);
    expect(prefixesOf(window)).toEqual([[1, 2], [3, 4], [7]]);
    expect(window.alongPrefixes(labels(6, 5, 8, 2, 1))).toEqual([1, 2, 8, 6, 5]);
    expect(window.alongPrefixes(labels(1, 2, 4, 3))).toEqual([3, 4, 1, 2]);
    // Accessed most often, but no promoted prefix extends it.
    expect(window.alongPrefixes(labels(2, 1, 7))).toEqual([7, 2, 1]);
  });

  it("forgets the prefix of an evicted request, not its counts, and only where no other request promoted it", () => {
    const window = windowAfter([1, 2], [1, 2], [3], [3, 1, 2]);
    window.drain();
    window.evict(ticket(2));
    window.evict(ticket(9));
    expect(prefixesOf(window)).toEqual([[3, 1, 2]]);
    expect(window.countOf(label(1))).toBe(3);
    expect(window.drain()).toEqual({ upserted: [{ turn: 2, labels: [1, 2], promoted: 0 }], removed: [] });
    window.evict(ticket(4));
    expect(prefixesOf(window)).toEqual([]);
    expect(window.alongPrefixes(labels(2, 3))).toEqual([2, 3]);
  });

  it("orders the same whether a node has more children than the request has blocks or fewer", () => {
    const busy = Array.from({ length: 60 }, (_, n) => [n + 1, 100 + n]).flatMap((context) => [context, context]);
    const window = windowAfter(...busy);
    expect(window.alongPrefixes(labels(105, 6))).toEqual([6, 105]);
    expect(window.alongPrefixes(labels(...Array.from({ length: 90 }, (_, n) => n + 200), 105, 6)).slice(0, 2)).toEqual([
      6, 105,
    ]);
  });

  it("gives every block once", () => {
    const permutes = fc.property(anySteps, anyContext, (steps, context) => {
      const stored = new StoredWindow();
      for (const step of steps) stored.take(step);
      const ordered = stored.window.alongPrefixes(context);
      expect([...ordered].sort()).toEqual([...context].sort());
      expect(stored.window.alongPrefixes(context)).toEqual(ordered);
    });
    fc.assert(permutes, { numRuns: 300 });
  });

  it('"unbounded maps": a request leaves the window with its counts and its prefix', () => {
    const window = new AccessWindow([]);
    window.take(labels(1, 2), ticket(1));
    window.take(labels(1, 2), ticket(2));
    for (let n = 3; n <= WINDOW_REQUESTS + 2; n++) {
      expect(prefixesOf(window)[0]).toEqual([1, 2]);
      window.take(labels(n + 100), ticket(n));
    }
    expect(window.size).toBe(WINDOW_REQUESTS);
    expect(window.countOf(label(1))).toBe(0);
    expect(prefixesOf(window)).toEqual([]);
    const { upserted, removed } = window.drain();
    expect(upserted).toHaveLength(WINDOW_REQUESTS);
    expect(removed).toEqual([1, 2]);
  });

  it("forgets blocks: no count, and no prefix that goes through them", () => {
    const window = windowAfter([1, 2, 3], [1, 2, 3], [2]);
    window.forget(new Set(labels(2)));
    expect([1, 2, 3].map((n) => window.countOf(label(n)))).toEqual([2, 0, 2]);
    expect(prefixesOf(window)).toEqual([[1]]);
    expect(window.size).toBe(2);
  });

  it("does not count a request for nothing, and counts a turn that is given again once", () => {
    const window = windowAfter([], [1]);
    window.take(labels(1, 2), ticket(2));
    expect(window.size).toBe(1);
    expect(window.countOf(label(1))).toBe(1);
  });

  it("is rebuilt from its rows, and goes on as if it had not been", () => {
    const life = fc.property(anySteps, anySteps, anyContext, (before, more, context) => {
      const kept = new StoredWindow();
      const reloaded = new StoredWindow();
      for (const step of before) {
        kept.take(step);
        reloaded.take(step);
      }
      reloaded.reload();
      const compare = () => {
        expect(reloaded.rows).toEqual(kept.rows);
        expect(reloaded.rows.size).toBe(reloaded.window.size);
        expect(prefixesOf(reloaded.window)).toEqual(prefixesOf(kept.window));
        expect(reloaded.window.alongPrefixes(context)).toEqual(kept.window.alongPrefixes(context));
      };
      compare();
      for (const step of more) {
        kept.take(step);
        reloaded.take(step);
        compare();
      }
    });
    fc.assert(life, { numRuns: 300 });
  });
});
