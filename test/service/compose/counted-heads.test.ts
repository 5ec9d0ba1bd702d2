import { describe, expect, it } from "vitest";
import { ana, composeWith, openService } from "./service-fixture.js";

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
});
