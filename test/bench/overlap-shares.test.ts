import { describe, expect, it } from "vitest";
import {
  leadingHeld,
  overlapShares,
  sharedInSession,
  sharedWords,
  shareOfMostReturned,
} from "../../bench/overlap-shares.js";

/** The second has two blocks of the first, none at its place; the third begins as the first does. */
const SEARCHES = [
  [1, 2, 3, 4],
  [2, 1, 5, 6],
  [1, 2, 7, 5],
];

describe("overlap of searches", () => {
  it("counts what any earlier search returned, what a prefix shares, and what one search has in common at most", () => {
    // Second: 2 shared, none aligned, 2 of the first. Third: 1, 2 and 5 shared, 1 and 2 aligned, and 3 of the second.
    expect(overlapShares(SEARCHES)).toEqual({ shared: 5 / 12, aligned: 2 / 12, nearest: 5 / 12 });
    expect(overlapShares([])).toEqual({ shared: 0, aligned: 0, nearest: 0 });
  });

  it("within sessions begins anew with each", () => {
    expect(sharedInSession(SEARCHES, 3)).toBeCloseTo(5 / 12, 12);
    expect(sharedInSession(SEARCHES, 2)).toBeCloseTo(2 / 12, 12);
    expect(sharedInSession(SEARCHES, 1)).toBe(0);
  });

  it("is told of the blocks returned most often", () => {
    // 1 and 2 three times, 5 twice, 3, 4, 6 and 7 once.
    expect(shareOfMostReturned(SEARCHES, 2 / 7)).toBe(6 / 12);
    expect(shareOfMostReturned(SEARCHES, 1)).toBe(1);
    expect(shareOfMostReturned(SEARCHES, 0)).toBe(0);
  });

  it("of words is of runs that an earlier text has", () => {
    const texts = ["Ana likes green tea", "In May Ana likes green tea", "green tea is hot", "Ben likes GREEN tea"];
    // Of 18 words the second text has four in the run of its first, the fourth three; the third has two only.
    expect(sharedWords(texts, 3)).toBe(7 / 18);
    expect(sharedWords(texts, 4)).toBe(4 / 18);
    expect(sharedWords(texts, 9)).toBe(0);
    expect(sharedWords([], 3)).toBe(0);
  });
});

describe("leadingHeld", () => {
  it("follows any one earlier order from its front, and goes on with no other", () => {
    const orders = [[1, 2, 3], [1, 4, 3], [1, 2, 4], [2, 3], [1, 4, 3, 9], []];
    expect(leadingHeld(orders)).toEqual([0, 1, 2, 0, 3, 0]);
  });
});
