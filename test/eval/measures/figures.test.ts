import { describe, expect, it } from "vitest";
import { milliseconds, percent, score, signed, tokens, withInterval } from "../../../src/eval/measures/measured.js";

describe("figures", () => {
  it.each([
    [tokens(1_234.5), "1,235"],
    [tokens(99.94), "99.9"],
    [milliseconds(1_234.4), "1,234"],
    [milliseconds(12.34), "12.3"],
    [milliseconds(0.123), "0.12"],
    [percent(0.7531), "75.3 %"],
    [score(0.5125), "0.513"],
    [signed(tokens)(200), "+200"],
    [signed(tokens)(-200), "−200"],
    [signed(score)(0), "0.000"],
    [withInterval({ value: -12, low: -14, high: -10 }, tokens), "−12.0 (−14.0 to −10.0)"],
  ])("are written as %s", (written, expected) => {
    expect(written).toBe(expected);
  });
});
