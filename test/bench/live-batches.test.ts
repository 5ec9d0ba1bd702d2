import { describe, expect, it } from "vitest";
import { executedLive } from "../../bench/live-batches.js";
import { RecordedBatch } from "../../bench/recorded-batch.js";
import { encodeO200k } from "../../src/cli/o200k.js";
import { SimulatedCache } from "../../src/core/cache/simulated-cache.js";
import { readTrace } from "../../src/eval/replay/recorded-trace.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace, recordedData, SKIPPED } from "../eval/locomo/recorded-searches.js";
import { someOf } from "../run-length.js";

const data = recordedData();
const reason = data === null ? SKIPPED : "";

const memories = ["Ana likes green tea.", "Ana lives in Ghent.", "Ana rides a red bicycle."].map((memory) => ({
  memory,
}));
const retrievals = [[0, 1], [2, 1], [1, 2], [2, 0, 1], [0]];

describe("batches one after the other", () => {
  const questions = retrievals.map((retrieved) => ({ question: "What?", retrieved }));
  const { requests } = new RecordedBatch([readTrace({ memories, questions })], 3, encodeO200k);

  it.each([1, 2, 5])("execute every request once, with its own blocks, in batches of %i", (size) => {
    const executed = executedLive(requests, size);
    expect(executed.map(({ request }) => request).sort()).toEqual([0, 1, 2, 3, 4]);
    for (const { request, order } of executed) {
      expect([...order].sort()).toEqual(requests[request]?.blocks.map(({ label }) => label).sort());
      expect(Math.floor(executed.findIndex((each) => each.request === request) / size)).toBe(
        Math.floor(request / size),
      );
    }
  });

  it("of one are what is composed one by one", () => {
    expect(executedLive(requests, 1)).toEqual(executedLive(requests, null));
  });
});

describe.skipIf(reason !== "")(`live batches of recorded Mem0 searches of two LoCoMo conversations${reason}`, () => {
  const traces = data === null ? [] : RECORDED_CONVERSATIONS.slice(0, 2).map((name) => readRecordedTrace(data, name));

  it.each(someOf([20, 100], 1))("hit what single requests do, and the more the larger they are, at k = %i", (k) => {
    const batch = new RecordedBatch(traces, k, encodeO200k);
    const ratioOf = (size: number | null) =>
      batch.hitRatio(executedLive(batch.requests, size), new SimulatedCache("blocks"));
    const alone = ratioOf(null);
    expect(ratioOf(1)).toBe(alone);
    const [few, some, all] = [8, 64, Number.POSITIVE_INFINITY].map(ratioOf) as [number, number, number];
    expect(few).toBeGreaterThan(1.05 * alone);
    expect(some).toBeGreaterThan(1.05 * few);
    expect(all).toBeGreaterThan(1.05 * some);
  });
});
