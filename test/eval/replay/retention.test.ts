import { describe, expect, it } from "vitest";
import { costs, LAWS, servedByHand, servedFixed, servedWith, uncached } from "../../../bench/retention-costs.js";
import { mean } from "../../../bench/statistics.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace, recordedData, SKIPPED } from "../locomo/recorded-searches.js";

const data = recordedData();
const reason = data === null ? SKIPPED : "";

describe.skipIf(reason !== "")(`conversations of 150 turns on recorded Mem0 searches${reason}`, () => {
  it("cost little more under auto than under the best fixed retention, whatever the engine and however short, and compute a fraction of the usual", {
    timeout: 600_000,
  }, () => {
    const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data ?? "", name));
    const conversations = { traces, k: 20, answerTokens: 8, turns: 150 };
    const fixed = servedFixed(conversations);
    const ratios = Object.values(LAWS).map((engine) => {
      const auto = servedWith(conversations, { retention: "auto", engine });
      return [8, 14, 30, 60, 150].map((turns) => {
        const costOf = (served: (typeof fixed)[number]) => {
          const begun = served.map((requests) => requests.slice(0, turns));
          return mean(costs(begun, engine));
        };
        return costOf(auto) / Math.min(...fixed.map((served) => costOf(served)));
      });
    });
    expect(Math.max(...ratios.flat())).toBeLessThanOrEqual(1.08);
    expect(Math.max(...ratios.map((byLength) => byLength.at(-1) ?? 0))).toBeLessThanOrEqual(1.03);
    expect(Math.min(...ratios.flat())).toBeLessThan(0.95);
    expect(uncached(fixed[0] ?? []) / uncached(servedByHand(conversations))).toBeLessThanOrEqual(0.05);
  });
});
