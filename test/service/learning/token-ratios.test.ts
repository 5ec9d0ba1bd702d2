import { describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { TokenRatios } from "../../../src/service/learning/engine-measures.js";

const ada = { userId: "ada" as UserId, model: "m" };

function ratios() {
  let time = 0;
  return {
    of: new TokenRatios(() => time),
    pass: (ms: number) => {
      time += ms;
    },
  };
}

describe("the ratio of an engine's tokens to memprefix's", () => {
  it("is 1 until a prompt was reported, then the largest of the newest eight", () => {
    const { of } = ratios();
    expect(of.ratioFor(ada, 1_000)).toBe(1);
    of.take(ada, { estimated: 1_000, reported: 1_299 });
    expect(of.ratioFor(ada, 1_000)).toBe(1.3);
    for (let prompt = 0; prompt < 7; prompt++) of.take(ada, { estimated: 1_000, reported: 1_099 });
    expect(of.ratioFor(ada, 1_000)).toBe(1.3);
    of.take(ada, { estimated: 1_000, reported: 1_099 });
    expect(of.ratioFor(ada, 1_000)).toBe(1.1);
  });

  it("is never beyond a tokenizer's, and below 1 only where enough prompts say so", () => {
    const { of } = ratios();
    for (let prompt = 0; prompt < 3; prompt++) of.take(ada, { estimated: 1_000, reported: 1 });
    expect(of.ratioFor(ada, 1_000)).toBe(1);
    of.take(ada, { estimated: 1_000, reported: 1 });
    expect(of.ratioFor(ada, 1_000)).toBe(0.5);
    of.take(ada, { estimated: 1_000, reported: 1_000_000_000 });
    expect(of.ratioFor(ada, 1_000)).toBe(4);
    of.take({ ...ada, model: "n" }, { estimated: 0, reported: 5 });
    expect(of.ratioFor({ ...ada, model: "n" }, 1)).toBe(1);
  });
});
