import { describe, expect, it } from "vitest";
import { describePrefixCache } from "./prefix-cache.suite.js";
import { SlotCache } from "./slot-cache.js";

const NO_LIMIT = "slots hold prompts of any length, for as long as no other takes their place";

describePrefixCache(
  "slots",
  {
    open: () => new SlotCache(4),
    blockTokens: 10,
    hitOfRepeat: ({ length }) => Math.max(0, length - 1),
  },
  {
    "hits what its rule says when a prompt comes twice, and holds no more than before":
      "a prompt of one token has nothing to reuse, so it goes to another slot the second time",
    "never holds more than its capacity, and hits no more than without one": NO_LIMIT,
    "takes a capacity that is never reached for none": NO_LIMIT,
    "refuses a capacity that is not above 0": NO_LIMIT,
  },
);

const prompt = (beginning: number, rest: number, length = 20) =>
  Array.from({ length }, (_, at) => (at < 10 ? 100 * beginning : 1_000 * rest) + at);

describe("prefix cache: slots", () => {
  it("takes the slot used longest ago for a prompt that shares a tenth of none", () => {
    const cache = new SlotCache(2);
    for (const n of [1, 2, 3]) cache.serve(prompt(n, n));
    expect(cache.serve(prompt(2, 9))).toBe(10);
    expect(cache.serve(prompt(1, 9))).toBe(0);
  });

  it("refuses a number of slots that no engine has", () => {
    for (const slots of [0, -1, 1.5, Number.NaN]) expect(() => new SlotCache(slots)).toThrow(RangeError);
  });
});
