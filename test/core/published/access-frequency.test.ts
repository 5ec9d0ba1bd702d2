import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Access, AccessWindow, WINDOW_REQUESTS } from "../../../src/core/published/access-frequency.js";
import type { Label, TurnId } from "../../../src/core/text/ids.js";
import { label, labels } from "../cache/served-sequences.js";
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
  it("orders along the promoted prefixes, by counts at each node, then the rest by counts, ties in relevance order", () => {
    const window = windowAfter([1, 2], [1, 2], [3, 4], [3, 4], [3, 4], [7], [7], [7], [7], [8]);
    expect(prefixesOf(window)).toEqual([[1, 2], [3, 4], [7]]);
    expect(window.alongPrefixes(labels(6, 5, 8, 2, 1))).toEqual([1, 2, 8, 6, 5]);
    expect(window.alongPrefixes(labels(1, 2, 4, 3))).toEqual([3, 4, 1, 2]);
    // Accessed most often, but no promoted prefix extends it.
    expect(window.alongPrefixes(labels(2, 1, 7))).toEqual([7, 2, 1]);
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
