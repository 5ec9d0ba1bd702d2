import { describe, expect, it } from "vitest";
import { ENGINE_MODELS, newPrompt, reportedFigures } from "../../../src/core/index.js";
import { observedCompose } from "./observed-compose.js";

/** Prices: 1 a token, 1.25 written, 0.1 read; from 1,024 tokens. */
const COSTS = ENGINE_MODELS["hosted-writes"];

describe("the figures of a prompt", () => {
  const prompt = observedCompose("r1", 1_000);
  const planned = (tokens: Partial<typeof prompt.plan>) => ({ ...prompt, plan: { ...prompt.plan, ...tokens } });
  const nothing = { report: {}, besideTokens: 0, model: null };

  it("are those of its plan", () => {
    const miss = { cause: "history_changed", tokens: 300 } as const;
    const expected = { expectedCachedTokens: 1_024, uncachedTokens: 976, miss };
    const figures = newPrompt({ ...planned(expected), carriedTokens: 7 }, COSTS);
    expect(figures).toMatchObject({
      model: "unknown",
      engine: "openai",
      layout: "single",
      policy: "prefix-exact",
      retention: "keep",
      epoch: null,
      usage: { promptTokens: 2_000, expectedTokens: 1_024, carriedTokens: 7, planned: miss, miss, report: null },
      apart: null,
    });
    // 2,000 at 1 each, against 1,024 read at 0.1 and 976 written at 1.25.
    expect(figures.savedMoney).toBeCloseTo(2_000 - 102.4 - 1_220);
    expect(figures.missedMoney).toBeCloseTo(300 * 1.15);
  });

  it("have what its engine reported, and why it missed", () => {
    const before = newPrompt(planned({ expectedCachedTokens: 1_500 }), COSTS);
    const report = { cachedTokens: 500, promptTokens: 2_000, ttftMs: 120.5 };
    const after = reportedFigures(before, { ...nothing, report, model: "sonnet" }, COSTS);
    expect(after).toMatchObject({
      model: "sonnet",
      usage: {
        planned: null,
        miss: { cause: "unknown", tokens: 1_000 },
        report: { cachedTokens: 500, promptTokens: 2_000 },
        firstTokenMs: 120.5,
      },
    });
    expect(after.savedMoney).toBeCloseTo(2_000 - 50 - 1_875);
  });

  it("change by a report with other numbers, not by a repeated one", () => {
    const before = newPrompt(planned({ expectedCachedTokens: 1_500 }), COSTS);
    const lost = { ...nothing, report: { cachedTokens: 0, ttftMs: 100 } };
    const first = reportedFigures(before, lost, COSTS);
    const marked = { ...first, usage: { ...first.usage, miss: { cause: "evicted", tokens: 1_500 } as const } };
    expect(reportedFigures(marked, lost, COSTS)).toEqual(marked);
    const corrected = reportedFigures(marked, { ...nothing, report: { cachedTokens: 1_536 } }, COSTS);
    expect(corrected.usage).toMatchObject({ report: { cachedTokens: 1_536 }, firstTokenMs: 100, miss: null });
    expect(reportedFigures(first, nothing, COSTS)).toEqual(first);
  });

  it("set apart what is too short to be cached, tools included, and what expired", () => {
    const short = planned({ totalTokens: 1_000 });
    expect(newPrompt(short, COSTS).apart).toBe("below_minimum");
    expect(newPrompt({ ...short, besideTokens: 500 }, COSTS).apart).toBeNull();
    expect(newPrompt(planned({ miss: { cause: "expired", tokens: 900 } }), COSTS).apart).toBe("expired");
  });

  it("take a chat's tools for no part of the prompt", () => {
    const before = newPrompt({ ...planned({ expectedCachedTokens: 1_600 }), besideTokens: 500 }, COSTS);
    const report = { cachedTokens: 500, promptTokens: 2_500 };
    const { usage } = reportedFigures(before, { ...nothing, report, besideTokens: 500 }, COSTS);
    expect(usage).toMatchObject({ report: { cachedTokens: 0, promptTokens: 2_000 }, miss: { tokens: 1_600 } });
  });

  it("have no money where prompts cost time", () => {
    expect(newPrompt(prompt, ENGINE_MODELS.gpu)).toMatchObject({ savedMoney: null, missedMoney: null });
  });
});
