import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { orderForReuse } from "../../../src/core/ordering/order-for-reuse.js";
import { RecentRetrievals } from "../../../src/core/ordering/recent-retrievals.js";
import type { Label, TurnId } from "../../../src/core/text/ids.js";
import { label, labels } from "../context-index/served-sequences.js";

/** Blocks of five tokens each. */
const blocks = (...numbers: readonly number[]) => labels(...numbers).map((block) => ({ label: block, tokens: 5 }));
const requests = (...sets: readonly (readonly number[])[]) => remembering(sets.map((set) => labels(...set)));
const setsOf = (recent: RecentRetrievals) => [...recent.sets()];

function remembering(requests: readonly (readonly Label[])[]): RecentRetrievals {
  return new RecentRetrievals(requests.map((asked, at) => ({ turn: (at + 1) as TurnId, labels: asked })));
}

const times = (count: number, set: readonly number[]) => Array.from({ length: count }, () => set);

describe("order for reuse", () => {
  it("keeps the relevance order where no recent request wants any of the blocks", () => {
    for (const recent of [requests(), requests([]), requests([7, 8], [9])]) {
      expect(orderForReuse([], blocks(3, 1, 2), labels(3, 1, 2), recent)).toEqual([3, 1, 2]);
    }
  });

  it("keeps the relevance order where recent requests want all of the blocks alike", () => {
    const recent = requests(...times(5, [1, 2, 3]));
    expect(orderForReuse([], blocks(3, 1, 2), labels(3, 1, 2), recent)).toEqual([3, 1, 2]);
  });

  it("puts first what most requests like this one want", () => {
    const recent = requests(...times(4, [3, 4]));
    expect(orderForReuse([], blocks(1, 2, 3, 4), labels(1, 2, 3, 4), recent)).toEqual([3, 4, 1, 2]);
  });

  it("goes on with what those want that want everything before it", () => {
    const recent = requests(...times(6, [3, 4]), ...times(4, [1, 2]));
    // By themselves 1 is wanted more than 4, but not behind 3.
    expect(orderForReuse([], blocks(1, 2, 3, 4), labels(1, 2, 3, 4), recent)).toEqual([3, 4, 1, 2]);
    expect(orderForReuse([], blocks(1, 2, 4), labels(1, 2, 3, 4), recent)).toEqual([1, 2, 4]);
  });

  it("leaves out requests that do not want what stands in front", () => {
    const recent = requests(...times(20, [1, 4]), ...times(4, [1, 2, 3]));
    const asked = labels(1, 5, 2, 3, 4);
    expect(orderForReuse(labels(1, 2), blocks(5, 3, 4), asked, recent)).toEqual([3, 5, 4]);
    expect(orderForReuse(labels(1), blocks(5, 2, 3, 4), asked, recent)[0]).toBe(4);
    expect(orderForReuse(labels(1, 9), blocks(5, 3, 4), asked, recent)).toEqual([5, 3, 4]);
  });

  it("counts a request the more, the more it has in common with this one", () => {
    const recent = requests(...times(2, [1, 2, 3, 5]), ...times(8, [4]));
    // Eight that share a quarter count less than two that share three quarters.
    expect(orderForReuse(labels(), blocks(4, 3, 2, 1), labels(4, 3, 2, 1), recent)).toEqual([3, 2, 1, 4]);
  });

  it("puts the longer of two first that are about as likely to be wanted again", () => {
    const rest = [
      { label: label(1), tokens: 1 },
      { label: label(2), tokens: 100 },
    ];
    expect(orderForReuse([], rest, labels(1, 2), requests([1, 2]))).toEqual([2, 1]);
    expect(orderForReuse([], rest, labels(1, 2), requests())).toEqual([1, 2]);
  });

  it("orders nothing into nothing", () => {
    expect(orderForReuse(labels(1), [], labels(1), requests([1, 2]))).toEqual([]);
    expect(orderForReuse([], [], [], requests([1, 2]))).toEqual([]);
  });

  const anyBlocks = fc.uniqueArray(fc.integer({ min: 1, max: 12 }).map(label), { maxLength: 10 });
  const anyRecent = fc.array(anyBlocks, { maxLength: 20 });

  it("gives back every block once, and the same order each time", () => {
    const anyTokens = fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 10, maxLength: 10 });
    const permutes = fc.property(
      anyBlocks,
      fc.nat({ max: 4 }),
      anyTokens,
      anyRecent,
      (asked, inFront, tokens, requested) => {
        const recent = remembering(requested);
        const rest = asked.slice(inFront).map((block, at) => ({ label: block, tokens: tokens[at] ?? 1 }));
        const before = structuredClone([rest, asked, setsOf(recent)]);
        const ordered = orderForReuse(asked.slice(0, inFront), rest, asked, recent);
        expect([...ordered].sort()).toEqual(asked.slice(inFront).sort());
        expect(orderForReuse(asked.slice(0, inFront), rest, asked, recent)).toEqual(ordered);
        expect([rest, asked, setsOf(recent)]).toEqual(before);
      },
    );
    fc.assert(permutes);
  });

  it("is not swayed by requests that share nothing with the blocks", () => {
    const ignores = fc.property(anyBlocks, anyRecent, (asked, recent) => {
      const rest = asked.map((block) => ({ label: block, tokens: 5 }));
      const strangers = [labels(20, 21), labels(22), []];
      const ordered = orderForReuse([], rest, asked, remembering(recent));
      expect(orderForReuse([], rest, asked, remembering([...strangers, ...recent]))).toEqual(ordered);
    });
    fc.assert(ignores);
  });
});
