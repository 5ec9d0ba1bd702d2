import { describe, expect, it } from "vitest";
import { RECORDED_CONVERSATIONS, readRecordedTrace, recordedData, SKIPPED } from "../locomo/recorded-searches.js";
import { costs, LAWS, mean, servedByHand, servedFixed, servedWith, uncached } from "./retention-costs.js";

const data = recordedData();
const reason = data === null ? SKIPPED : "";

describe.skipIf(reason !== "")(`conversations of 150 turns on recorded Mem0 searches${reason}`, () => {
  it("cost at most 3 % more under auto than under the best fixed retention, whatever the engine, and compute a fraction of the usual", {
    timeout: 120_000,
  }, () => {
    const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data ?? "", name));
    const conversations = { traces, k: 20, answerTokens: 8, turns: 150 };
    const fixed = servedFixed(conversations);
    const ratios = Object.values(LAWS).map((engine) => {
      const best = Math.min(...fixed.map((served) => mean(costs(served, engine))));
      return mean(costs(servedWith(conversations, "auto", engine), engine)) / best;
    });
    expect(Math.max(...ratios)).toBeLessThanOrEqual(1.03);
    expect(Math.min(...ratios)).toBeLessThan(1);
    expect(uncached(fixed[0] ?? []) / uncached(servedByHand(conversations))).toBeLessThanOrEqual(0.05);
  });
});
