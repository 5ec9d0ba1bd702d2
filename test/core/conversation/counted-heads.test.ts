import { describe, expect, it } from "vitest";
import { CountedHeads } from "../../../src/core/conversation/replay.js";
import type { Digest } from "../../../src/core/index.js";
import { ana, composeWith, openService } from "../../service/compose/service-fixture.js";

describe("the instructions at the head of a user's prompts", () => {
  it("are counted once, however many prompts begin with them, and again where they are others", async () => {
    const counted: string[] = [];
    const service = openService({
      countTokens: (text) => {
        counted.push(text);
        return Math.ceil(text.length / 4);
      },
    });
    const times = (instructions: string) => counted.filter((text) => text === instructions).length;
    const totals: number[] = [];
    for (const system of ["Be kind.", "Be kind.", "Be very brief.", "Be kind."]) {
      const { plan } = await composeWith(service, { userId: ana, system, query: "Which tea?", memories: [] });
      totals.push(plan.totalTokens);
    }
    expect([times("Be kind."), times("Be very brief.")]).toEqual([1, 1]);
    expect(totals[1]).toBe(totals[0]);
    expect(totals[3]).toBe(totals[0]);
    expect(totals[2]).not.toBe(totals[0]);
    await service.close();
  });

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
