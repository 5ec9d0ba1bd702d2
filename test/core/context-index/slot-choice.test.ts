import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chooseSlot, type FreeSlot } from "../../../src/core/context-index/slot-choice.js";

const slot = (given: Partial<FreeSlot>): FreeSlot => ({ salt: "a", tokens: 1_000, shared: 0, lastUsed: 1, ...given });

describe("the slot for a prompt", () => {
  it("is none where none is free", () => {
    expect(chooseSlot([], "a")).toBeUndefined();
  });

  it("is the one with the longest shared prefix, however old it is", () => {
    expect(
      chooseSlot([slot({ shared: 300, lastUsed: 9 }), slot({ shared: 400, lastUsed: 8 }), slot({ lastUsed: 1 })], "a"),
    ).toBe(1);
  });

  it("is the least recently used one where none shares over a tenth of what it holds", () => {
    const free = [
      slot({ shared: 100, lastUsed: 5 }),
      slot({ shared: 0, lastUsed: 3 }),
      slot({ shared: 99, lastUsed: 4 }),
    ];
    expect(chooseSlot(free, "a")).toBe(1);
    expect(chooseSlot([slot({ shared: 101, lastUsed: 5 }), slot({ lastUsed: 3 })], "a")).toBe(0);
  });

  it("is no match where the salt is another, whatever it shares", () => {
    const free = [slot({ salt: "b", shared: 900, lastUsed: 2 }), slot({ salt: undefined, shared: 900, lastUsed: 1 })];
    expect(chooseSlot(free, "a")).toBe(1);
    expect(chooseSlot([slot({ salt: "b", shared: 900, lastUsed: 2 }), slot({ shared: 200, lastUsed: 3 })], "a")).toBe(
      1,
    );
    expect(
      chooseSlot(
        [slot({ salt: "b", shared: 900, lastUsed: 3 }), slot({ salt: undefined, shared: 200, lastUsed: 4 })],
        undefined,
      ),
    ).toBe(1);
  });

  it("is an unused one before any that holds something", () => {
    const free = [slot({ lastUsed: 1 }), slot({ salt: undefined, tokens: 0, lastUsed: 0 })];
    expect(chooseSlot(free, "a")).toBe(1);
  });

  it("is always one of the free ones, and the least recently used of equal matches", () => {
    const any = fc.record({
      salt: fc.constantFrom("a", "b", undefined),
      tokens: fc.nat(50),
      shared: fc.nat(50),
      lastUsed: fc.nat(20),
    });
    fc.assert(
      fc.property(fc.array(any, { minLength: 1, maxLength: 6 }), fc.constantFrom("a", undefined), (free, salt) => {
        const chosen = free[chooseSlot(free, salt) ?? -1];
        if (chosen === undefined) throw new Error("none was chosen");
        const matches = free.filter((other) => other.salt === salt && other.shared > other.tokens / 10);
        const most = Math.max(...matches.map(({ shared }) => shared));
        const wanted = matches.length === 0 ? free : matches.filter(({ shared }) => shared === most);
        expect(wanted).toContain(chosen);
        expect(chosen.lastUsed).toBe(Math.min(...wanted.map(({ lastUsed }) => lastUsed)));
      }),
    );
  });
});
