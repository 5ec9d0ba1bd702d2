import { describe, expect, it } from "vitest";
import {
  causesOf,
  composedUsage,
  missedTokens,
  newTokens,
  reportedUsage,
  setApart,
  uncachedTokens,
} from "../../../src/core/usage/usage-record.js";

const tokens = { promptTokens: 400, expectedTokens: 100, carriedTokens: 0 };
const facts = {
  before: { reusableTokens: 300, ageMs: 60_000, isEvicted: false },
  hasOtherInstructions: true,
  beganEpoch: false,
  isRewritten: false,
  isDropped: false,
  movedTokens: 0,
  hasNewInFront: false,
};
const usageWith = (minimumPrefixTokens: number) =>
  composedUsage(tokens, facts, { minimumPrefixTokens, ttlMs: null, bound: null });

describe("what a composed prompt missed", () => {
  it("is what the prompt before had and it does not, by what differs", () => {
    const usage = usageWith(400);
    expect(causesOf(usage)).toEqual([{ cause: "changed_instructions", tokens: 200 }]);
    expect(setApart(usage, 400)).toBeNull();
  });

  it("is below the minimum where the engine caches no prompt as short, whatever differs", () => {
    const usage = usageWith(401);
    expect(causesOf(usage)).toEqual([{ cause: "below_minimum", tokens: 200 }]);
    expect(setApart(usage, 401)).toBe("below_minimum");
  });

  it("was displaced by others' prompts or evicted from its slot, where that bounds the cache and nothing differs", () => {
    const same = { ...facts, hasOtherInstructions: false };
    const cause = (bound: "tokens" | "slots" | null) =>
      causesOf(composedUsage(tokens, same, { minimumPrefixTokens: 0, ttlMs: null, bound }))[0]?.cause;
    expect([cause("tokens"), cause("slots"), cause(null)]).toEqual(["displaced", "evicted", "unknown"]);
  });

  it.each([
    // Of 400 tokens 100 were expected and 200 more were sent before.
    ["nothing more", 100, 200, 100],
    ["half of it", 200, 100, 100],
    ["all but a step", 296, 0, 104],
    ["what others sent, too", 380, 0, 20],
  ])("is not what the engine had after all: %s", (_, cachedTokens, missed, fresh) => {
    const report = { cachedTokens, promptTokens: 400 };
    const usage = reportedUsage(usageWith(0), { report, firstTokenMs: 9, minimumPrefixTokens: 0, because: null });
    expect([missedTokens(usage), newTokens(usage)]).toEqual([missed, fresh]);
    expect(causesOf(usage)).toEqual(missed === 0 ? [] : [{ cause: "changed_instructions", tokens: missed }]);
  });

  it.each([
    ["nothing", 100, 200],
    ["half of it", 200, 100],
    ["less than was expected", 40, 200],
  ])("stays with a repeated report, and with a time alone, where the engine had %s", (_, cachedTokens, missed) => {
    const report = { cachedTokens, promptTokens: 400 };
    const once = reportedUsage(usageWith(0), { report, firstTokenMs: 9, minimumPrefixTokens: 0, because: "in_flight" });
    const of = { firstTokenMs: 12, minimumPrefixTokens: 0, because: null };
    for (const again of [report, null])
      expect(reportedUsage(once, { ...of, report: again })).toEqual({ ...once, firstTokenMs: 12 });
    expect(once.planned).toEqual({ cause: "changed_instructions", tokens: missed });
    expect(once.unserved).toEqual(cachedTokens < 100 ? { cause: "in_flight", tokens: 60 } : null);
  });

  it("is without the tools that the engine counts and has in front of it", () => {
    // 300 were expected; of tools there are 2,000 more.
    const usage = { ...usageWith(0), expectedTokens: 300, planned: null };
    const of = { firstTokenMs: null, minimumPrefixTokens: 0, because: null };
    const report = (cachedTokens: number) =>
      reportedUsage(usage, { ...of, report: { cachedTokens, promptTokens: 2_400, besideTokens: 2_000 } });
    const missed = [0, 2_000, 2_300].map((cached) => [missedTokens(report(cached)), uncachedTokens(report(cached))]);
    expect(missed).toEqual([
      [300, 400],
      [300, 400],
      [0, 100],
    ]);
    expect(report(2_300).report).toEqual({ cachedTokens: 300, promptTokens: 400 });
    expect(
      reportedUsage(report(2_000), {
        ...of,
        report: { cachedTokens: 2_000, promptTokens: 2_400, besideTokens: 2_000 },
      }),
    ).toEqual(report(2_000));
  });

  it("is of the corrected report, as if it had been the first", () => {
    const reported = (usage: typeof once, cachedTokens: number) =>
      reportedUsage(usage, {
        report: { cachedTokens, promptTokens: 400 },
        firstTokenMs: null,
        minimumPrefixTokens: 0,
        because: null,
      });
    const once = usageWith(0);
    for (const first of [200, 40, 0])
      for (const second of [150, 40, 380])
        expect(reported(reported(once, first), second)).toEqual(reported(once, second));
  });

  it("leaves what was computed in the count of what was sent, whatever the engine's tokens are", () => {
    const report = { cachedTokens: 150, promptTokens: 600 };
    const usage = reportedUsage(usageWith(0), { report, firstTokenMs: 9, minimumPrefixTokens: 0, because: null });
    expect(uncachedTokens(usage)).toBe(300);
  });
});
