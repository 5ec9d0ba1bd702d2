import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { countO200k, encodeO200k } from "../../../src/cli/o200k.js";
import { SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import { ORDERING_POLICIES, POLICY_NAMES, type PolicyName } from "../../../src/core/index.js";
import { EvaluationError } from "../../../src/eval/base/run-files.js";
import { pickConversation, readLocomo } from "../../../src/eval/locomo/locomo-data.js";
import { type RecordedTrace, readTrace } from "../../../src/eval/replay/recorded-trace.js";
import { type ReplayedTrace, replayTrace, type TraceReplay } from "../../../src/eval/replay/replay-trace.js";
import { someOf } from "../../run-length.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace, recordedData, SKIPPED } from "../locomo/recorded-searches.js";

const data = recordedData();

const SMALL = readTrace({
  memories: ["Ana likes green tea.", "Ana lives in Ghent.", "Ana rides a red bicycle to work."].map((memory, at) => ({
    memory,
    evidence: [`D1:${at}`],
  })),
  questions: [
    { question: "What?", answer: "Tea.", evidence: ["D1:0"], retrieved: [0, 1, 2] },
    { question: "Where?", answer: 7, evidence: ["D1:2", "D1:1"], retrieved: [2, 0, 1] },
  ],
});

const sample = JSON.parse(readFileSync(new URL("../../../examples/sample-locomo.json", import.meta.url), "utf8"));
const { observations } = pickConversation(readLocomo(sample));

/** Questions that come back to what was asked some time ago, in another order each time. */
const overlapping = readTrace({
  memories: observations.map(({ text }) => ({ memory: text, evidence: [] })),
  questions: Array.from({ length: 120 }, (_, turn) => ({
    question: `What happened on day ${turn}?`,
    answer: "Much.",
    evidence: [],
    retrieved: [
      ...new Set(
        Array.from({ length: 12 }, (_, n) => ((turn % 11) * 7 + ((n * 5 + turn) % 12) * 2) % observations.length),
      ),
    ],
  })),
});

function replayOf(
  trace: ReturnType<typeof readTrace>,
  policy: PolicyName,
  options: Partial<TraceReplay> = {},
): ReplayedTrace {
  const counters = { encode: encodeO200k, countTokens: countO200k };
  const of = { k: 20, policy: ORDERING_POLICIES[policy], budgetRatio: null, layout: "single", ...options } as const;
  return replayTrace(trace, new SimulatedCache("radix"), counters, of);
}

describe("replaying a trace", () => {
  it("gives each prompt's blocks as they stand in it, and what a simulated cache makes of it", () => {
    const { requests, totals } = replayOf(SMALL, "prefix-exact");
    expect(requests.map(({ order, carried }) => ({ order, carried }))).toEqual([
      { order: [0, 1, 2], carried: [] },
      { order: [0, 1, 2], carried: [] },
    ]);
    expect(requests[0]?.cachedTokens).toBe(0);
    expect(requests[1]?.cachedTokens).toBeGreaterThan(20);
    for (const { promptTokens, cachedTokens, uncachedTokens } of requests)
      expect(cachedTokens + uncachedTokens).toBe(promptTokens);
    expect(totals).toMatchObject({ requests: 2, evidence: 3, evidenceInPrompt: 3 });
    expect(totals.prefilledMemoryTokens * 2).toBe(totals.retrievedTokens);
  });

  it("names carried blocks, and counts evidence in them", () => {
    const { requests, totals } = replayOf(SMALL, "carry-over", { k: 2, budgetRatio: 3 });
    expect(requests[1]).toMatchObject({ order: [0, 2], carried: [] });
    expect(totals.evidenceInPrompt).toBe(2);
  });

  it("counts blocks of earlier turns of a conversation as standing in the prompt", () => {
    const { requests } = replayOf(SMALL, "prefix-exact", { k: 1, layout: "conversation" });
    expect(requests.map(({ order }) => order)).toEqual([[0], [0, 2]]);
  });

  it("refuses what is no trace, naming the field", () => {
    expect(() => readTrace({ memories: [] })).toThrow(EvaluationError);
    expect(() => readTrace({ memories: [{ memory: "a" }], questions: [{ question: "b", retrieved: [1] }] })).toThrow(
      "questions[0].retrieved: there is no memory 1",
    );
  });

  describe("with a cache that is smaller than what was served", () => {
    const CAPACITY = 1_200;
    /** Mean tokens by which the plan's expectation missed what the cache held, and how many it held. */
    const outcome = (options: Partial<TraceReplay>, layout: TraceReplay["layout"] = "single") => {
      const of = { k: 12, policy: ORDERING_POLICIES["prefix-exact"], budgetRatio: null, layout, ...options };
      const cache = new SimulatedCache("blocks", { capacityTokens: CAPACITY });
      const { requests } = replayTrace(overlapping, cache, { encode: encodeO200k, countTokens: countO200k }, of);
      const error = requests.map((request) => Math.abs(request.expectedCachedTokens - request.cachedTokens));
      const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
      return { error: mean(error), cached: mean(requests.map(({ cachedTokens }) => cachedTokens)) };
    };

    it("expects what is long gone where it is not told, comes closer by reports, and reuses more", () => {
      const [untold, told] = [outcome({}), outcome({ reports: true })];
      expect(untold.error).toBeGreaterThan(100);
      expect(told.error).toBeLessThan(0.75 * untold.error);
      expect(told.cached).toBeGreaterThan(untold.cached);
    });
  });

  const title = "on real Mem0 searches of six conversations";
  describe(data === null ? `${title}${SKIPPED}` : title, () => {
    const traces: readonly RecordedTrace[] =
      data === null ? [] : RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));
    const median = (values: number[]) => {
      const sorted = values.sort((a, b) => a - b);
      return ((sorted[2] ?? Number.NaN) + (sorted[3] ?? Number.NaN)) / 2;
    };
    const replaysOf = (policy: PolicyName, k: number, budget: Partial<TraceReplay> = {}, of = traces) =>
      of.map((trace) => replayOf(trace, policy, { k, ...budget, limit: 150 }));
    const totalsOf = (policy: PolicyName, k: number, budget: Partial<TraceReplay> = {}, of = traces) =>
      replaysOf(policy, k, budget, of).map(({ totals }) => totals);
    const prefilled = (totals: readonly ReplayedTrace["totals"][]) =>
      median(totals.map((t) => t.prefilledMemoryTokens / t.retrievedTokens));

    it.skipIf(data === null)(
      "reports halve the error of what a small cache is expected to hold",
      () => {
        const capacityTokens = 4_000;
        const errorWith = (options: Partial<TraceReplay>) => {
          const of = { k: 20, policy: ORDERING_POLICIES["prefix-exact"], budgetRatio: null, layout: "single" } as const;
          const errors = someOf(traces, 1).flatMap((trace) => {
            const cache = new SimulatedCache("blocks", { capacityTokens });
            const counters = { encode: encodeO200k, countTokens: countO200k };
            return replayTrace(trace, cache, counters, { ...of, limit: 150, ...options }).requests.map((request) =>
              Math.abs(request.expectedCachedTokens - request.cachedTokens),
            );
          });
          return errors.reduce((sum, error) => sum + error, 0) / errors.length;
        };
        expect(errorWith({ reports: true })).toBeLessThan(errorWith({}) / 2);
      },
      60_000,
    );

    it.skipIf(data === null).each(
      someOf(
        [
          [20, 1.5, 0.48],
          [20, 3, 0.27],
          [100, 1.5, 0.16],
          [100, 3, 0.025],
        ] as const,
        1,
      ),
    )(
      "carry-over at k = %i that sends at most %d× over all prompts so far prefills at most %d, without losing evidence",
      (k, budgetRatio, most) => {
        const replays = replaysOf("carry-over", k, { budgetRatio });
        expect(prefilled(replays.map(({ totals }) => totals))).toBeLessThanOrEqual(most);
        const retrieved = totalsOf("retrieval", k);
        for (const [at, { requests, totals }] of replays.entries()) {
          expect(totals.evidenceInPrompt).toBeGreaterThanOrEqual(retrieved[at]?.evidenceInPrompt ?? Number.NaN);
          expect(totals.sentRatio).toBeLessThanOrEqual(budgetRatio);
          expect(totals.largestSentRatio).toBeLessThanOrEqual(1.5 * budgetRatio);
          let unused = 0;
          for (const { memoryTokens, retrievedTokens } of requests) {
            unused += budgetRatio * retrievedTokens - memoryTokens;
            expect(unused).toBeGreaterThanOrEqual(0);
          }
        }
      },
      60_000,
    );
    it.skipIf(data === null).each(
      someOf(
        [
          [20, 1.5, 0.49],
          [20, 3, 0.32],
          [100, 1.5, 0.16],
          [100, 3, 0.025],
        ] as const,
        1,
      ),
    )(
      "carry-over at k = %i that sends at most %d× in each prompt prefills at most %d",
      (k, budgetEach, most) => {
        const totals = totalsOf("carry-over", k, { budgetEach });
        expect(prefilled(totals)).toBeLessThanOrEqual(most);
        for (const { largestSentRatio } of totals) expect(largestSentRatio).toBeLessThanOrEqual(budgetEach);
      },
      60_000,
    );
    it.skipIf(data === null)(
      "no policy sends less evidence than was retrieved; prefix-exact hits most of those that carry nothing",
      () => {
        const some = someOf(traces, 1);
        const retrieved = totalsOf("retrieval", 20, {}, some);
        const ours = totalsOf("prefix-exact", 20, {}, some);
        for (const policy of POLICY_NAMES) {
          for (const [at, totals] of totalsOf(policy, 20, { budgetRatio: 1.5 }, some).entries()) {
            expect(totals.evidenceInPrompt).toBeGreaterThanOrEqual(retrieved[at]?.evidenceInPrompt ?? Number.NaN);
            if (policy !== "carry-over")
              expect(totals.prefilledMemoryTokens).toBeGreaterThanOrEqual(
                ours[at]?.prefilledMemoryTokens ?? Number.NaN,
              );
          }
        }
      },
      60_000,
    );
  });
});
