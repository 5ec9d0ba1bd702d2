import { describe, expect, it } from "vitest";
import {
  newTokens,
  type PromptUsage,
  reportedUsage,
  setApart,
  uncachedTokens,
} from "../../../src/core/usage/usage-record.js";

/** Of 400 tokens 100 were expected to be cached, and 200 missed. */
const planned = { cause: "instructions_changed", tokens: 200 } as const;
const USAGE: PromptUsage = {
  promptTokens: 400,
  expectedTokens: 100,
  carriedTokens: 0,
  planned,
  miss: planned,
  report: null,
  firstTokenMs: null,
};
const reported = (usage: PromptUsage, cachedTokens: number) =>
  reportedUsage(usage, { report: { cachedTokens, promptTokens: 400 }, firstTokenMs: null, because: null });

describe("what a prompt missed", () => {
  it("is set apart where the engine caches no prompt as short, or its prefix expired", () => {
    expect([setApart(USAGE, 400), setApart(USAGE, 401)]).toEqual([null, "below_minimum"]);
    expect(setApart({ ...USAGE, miss: { cause: "expired", tokens: 1 } }, 0)).toBe("expired");
  });

  it("is not what the engine had after all; the new turn's own text is the rest", () => {
    const of = (cached: number) => [reported(USAGE, cached).miss?.tokens ?? 0, newTokens(reported(USAGE, cached))];
    expect([100, 200, 296, 380].map(of)).toEqual([
      [200, 100],
      [100, 100],
      [0, 104],
      [0, 20],
    ]);
  });

  it("stays with a repeated report, and with a time alone; its reason may show later", () => {
    const once = reportedUsage(
      { ...USAGE, planned: null, miss: null },
      { report: { cachedTokens: 3, promptTokens: 400 }, firstTokenMs: 9, because: null },
    );
    for (const report of [once.report, null])
      expect(reportedUsage(once, { report, firstTokenMs: 12, because: null })).toEqual({ ...once, firstTokenMs: 12 });
    expect(once.miss).toEqual({ cause: "unknown", tokens: 97 });
    expect(reportedUsage(once, { report: once.report, firstTokenMs: null, because: "restarted" }).miss).toEqual({
      cause: "restarted",
      tokens: 97,
    });
  });

  it("is without the tools that the engine counts and has in front of it", () => {
    // 300 were expected; of tools there are 2,000 more.
    const usage = { ...USAGE, expectedTokens: 300, planned: null, miss: null };
    const of = (cachedTokens: number) =>
      reportedUsage(usage, {
        report: { cachedTokens, promptTokens: 2_400, besideTokens: 2_000 },
        firstTokenMs: null,
        because: null,
      });
    expect([0, 2_000, 2_300].map((cached) => [of(cached).miss?.tokens ?? 0, uncachedTokens(of(cached))])).toEqual([
      [300, 400],
      [300, 400],
      [0, 100],
    ]);
    expect(of(2_300).report).toEqual({ cachedTokens: 300, promptTokens: 400 });
  });

  it("is of the corrected report, as if it had been the first", () => {
    for (const first of [200, 40, 0])
      for (const second of [150, 40, 380])
        expect(reported(reported(USAGE, first), second)).toEqual(reported(USAGE, second));
  });

  it("leaves what was computed in the count of what was sent, whatever the engine's tokens are", () => {
    const report = { cachedTokens: 150, promptTokens: 600 };
    expect(uncachedTokens(reportedUsage(USAGE, { report, firstTokenMs: 9, because: null }))).toBe(300);
  });
});
