import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sessionRounds } from "./session-rounds.js";

const named = (lengths: readonly number[], open: number) =>
  [...sessionRounds(lengths, open)].map(({ session, turn }) => `${"abcdef"[session]}${turn}`).join(" ");

describe("sessionRounds", () => {
  it("asks a turn of every open session in turn, and opens the next where one ends", () => {
    expect(named([2, 3, 1, 2], 2)).toBe("a0 b0 a1 b1 b2 c0 d0 d1");
    expect(named([2, 3], 1)).toBe("a0 a1 b0 b1 b2");
    expect(named([2, 0, 1], 8)).toBe("a0 c0 a1");
    expect(named([], 2)).toBe("");
  });

  it("asks every turn of every session once, in order, of at most so many sessions at a time", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 5 }), { maxLength: 8 }), fc.integer({ min: 1, max: 4 }), (lengths, open) => {
        const due = [...sessionRounds(lengths, open)];
        for (const [session, length] of lengths.entries()) {
          const turns = due.filter((one) => one.session === session).map(({ turn }) => turn);
          expect(turns).toEqual(Array.from({ length }, (_, turn) => turn));
        }
        for (const at of due.keys()) {
          const begun = new Set(due.slice(0, at + 1).map(({ session }) => session));
          const unfinished = [...begun].filter((session) => due.slice(at).some((one) => one.session === session));
          expect(unfinished.length).toBeLessThanOrEqual(open);
        }
      }),
    );
  });
});
