import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AccessWindow, WINDOW_REQUESTS } from "../../../src/core/published/access-frequency.js";
import { label, labels } from "../cache/served-sequences.js";
import { anyContext, prefixesOf, ticket } from "./clustered-contexts.js";

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

  it("is rebuilt from the rows that it hands over, forgotten blocks left out", () => {
    const someLabels = fc.uniqueArray(fc.integer({ min: 1, max: 9 }).map(label), { minLength: 1, maxLength: 2 });
    const lives = fc.property(
      fc.array(anyContext, { maxLength: 25 }),
      someLabels,
      anyContext,
      (contexts, gone, next) => {
        const window = windowAfter(...contexts);
        window.forget(new Set(gone));
        window.take(window.alongPrefixes(next), ticket(contexts.length + 1));
        const rows = structuredClone(window.drain().upserted);
        const reloaded = new AccessWindow([...rows].reverse());
        expect(reloaded.stored()).toEqual(window.stored());
        expect(prefixesOf(reloaded)).toEqual(prefixesOf(window));
        expect(reloaded.alongPrefixes(next)).toEqual(window.alongPrefixes(next));
        for (const { labels: kept } of window.stored().slice(0, -1))
          expect(kept.filter((one) => gone.includes(one))).toEqual([]);
      },
    );
    fc.assert(lives, { numRuns: 300 });
  });
});
