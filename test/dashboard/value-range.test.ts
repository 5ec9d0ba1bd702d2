import { describe, expect, it } from "vitest";
import { valueRange } from "../../src/dashboard/value-range.js";

describe("valueRange", () => {
  it.each([
    [2, 10, undefined, [0, 10.8]],
    [0.2, 0.5, 1, [0, 1]],
    [-10, 5, undefined, [-10.8, 5.4]],
    // Nothing but losses: 0 is the top, whatever their size.
    [-0.001, -0.0005, undefined, [-0.00108, 0]],
    [0, 0, undefined, [0, 1]],
    [null, null, undefined, [0, 1]],
  ])("of %s to %s, at least %s, is %j", (least, largest, most, [from = 0, to = 0]) => {
    const range = valueRange(least, largest, most);
    expect(range[0]).toBeCloseTo(from, 9);
    expect(range[1]).toBeCloseTo(to, 9);
  });
});
