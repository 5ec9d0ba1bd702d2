import { describe, expect, it } from "vitest";
import { CountedHeads } from "../../../src/core/conversation/replay.js";
import type { Digest } from "../../../src/core/index.js";

describe("counts of the instructions at the head of a user's prompts", () => {
  it("are held in a number that is bounded", () => {
    const heads = new CountedHeads();
    let counts = 0;
    const ask = (n: number) => heads.tokensOf(String(n) as Digest, () => ++counts);
    for (let n = 0; n < 100; n++) ask(n);
    expect(counts).toBe(100);
    ask(99);
    expect(counts).toBe(100);
    ask(0);
    expect(counts).toBe(101);
  });
});
