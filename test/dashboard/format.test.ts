import { describe, expect, it } from "vitest";
import { ago, duration, money, percent, shareOf, shortId, whole } from "../../src/dashboard/format.js";

describe("figures", () => {
  it.each([
    [0.3, "0.3 ms"],
    [45.4, "45 ms"],
    [999.9, "1000 ms"],
    [1_000, "1 s"],
    [1_240, "1.2 s"],
    [60_000, "1 min"],
    [5_400_000, "1.5 h"],
    [86_400_000 * 3, "3 d"],
    [null, "–"],
    [undefined, "–"],
  ])("of %s ms are %s", (ms, text) => {
    expect(duration(ms)).toBe(text);
  });

  it("are a dash where nothing is known, and never a zero that nobody measured", () => {
    expect([percent(null), percent(Number.NaN), whole(null), money(null)]).toEqual(["–", "–", "–", "–"]);
    expect(percent(0)).toBe("0%");
    expect(percent(0.79249)).toBe("79.2%");
    expect([percent(0.0004), percent(0.9996), percent(1), percent(0.0006)]).toEqual([
      "<0.1%",
      ">99.9%",
      "100%",
      "0.1%",
    ]);
    expect(shareOf(1, 0)).toBeNull();
    expect(shareOf(null, 4)).toBeNull();
    expect(shareOf(1, 4)).toBe(0.25);
  });

  it("of money have as many digits as its size asks for, losses too", () => {
    expect([money(1234.5), money(12.345), money(0.00412), money(-2.5)]).toEqual(["1,235", "12.35", "0.0041", "-2.50"]);
    expect([money(0), money(0.00001), money(-0.00001)]).toEqual(["0", "<0.0001", ">-0.0001"]);
  });

  it("of time passed are never of the future", () => {
    expect(ago(2_000, 1_000)).toBe("now");
    expect(ago(0, 2_900)).toBe("2 s ago");
    expect(ago(0, 240_000)).toBe("4 min ago");
  });

  it("of long ids keep both ends", () => {
    expect(shortId("a".repeat(24))).toBe("a".repeat(24));
    expect(shortId(`begin-${"x".repeat(40)}-end`)).toBe("begin-xxxxxxxxxxx…xx-end");
  });
});
