import { describe, expect, it } from "vitest";
import { executedLive } from "../../bench/live-batches.js";
import { onlineOrders } from "../../bench/online-orders.js";
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
const user = (...retrieved: readonly (readonly number[])[]) =>
  readTrace({ memories, questions: retrieved.map((indexes) => ({ question: "What?", retrieved: indexes })) });

const ordersOf = (batch: RecordedBatch) => [
  batch.executedBy("retrieval"),
  onlineOrders(batch),
  batch.executedBy("context-pilot"),
  batch.executedBy("shared-prefixes"),
];

describe("a recorded batch", () => {
  it("holds the same tokens in whatever order, and none of one user's memories in another's prompt", () => {
    const batch = new RecordedBatch([user([0, 1], [1, 0]), user([2, 0])], 2, encodeO200k);
    for (const executed of ordersOf(batch)) {
      const prompts = executed.map((each) => batch.promptOf(each));
      expect(prompts.reduce((sum, { length }) => sum + length, 0)).toBe(batch.promptTokens);
    }
    const [first, second, other] = batch.executedBy("shared-prefixes");
    expect(second?.order).toEqual(first?.order);
    expect(other).toMatchObject({ request: 2, order: [3, 1] });
  });

  it("hits more in an endless cache than in one without room for a prompt", () => {
    const batch = new RecordedBatch([user([0, 1, 2], [0, 1, 2], [2, 1, 0])], 3, encodeO200k);
    const executed = batch.executedBy("shared-prefixes");
    expect(batch.hitRatio(executed, new SimulatedCache("blocks", { capacityTokens: 10_000 }))).toBeGreaterThan(0.4);
    expect(batch.hitRatio(executed, new SimulatedCache("blocks", { capacityTokens: 16 }))).toBeLessThan(
      batch.hitRatio(executed, new SimulatedCache("blocks", { capacityTokens: 10_000 })),
    );
  });
});

describe("batches one after the other", () => {
  const { requests } = new RecordedBatch([user([0, 1], [2, 1], [1, 2], [2, 0, 1], [0])], 3, encodeO200k);

  it.each([1, 2, 5])("execute every request once, with its own blocks, in batches of %i", (size) => {
    const executed = executedLive(requests, size);
    expect(executed.map(({ request }) => request).sort()).toEqual([0, 1, 2, 3, 4]);
    for (const [at, { request, order }] of executed.entries()) {
      expect([...order].sort()).toEqual(requests[request]?.blocks.map(({ label }) => label).sort());
      expect(Math.floor(at / size)).toBe(Math.floor(request / size));
    }
  });

  it("of one are what is composed one by one", () => {
    expect(executedLive(requests, 1)).toEqual(executedLive(requests, null));
  });
});

describe.skipIf(reason !== "")(`batches of recorded Mem0 searches of two LoCoMo conversations${reason}`, () => {
  const traces = data === null ? [] : RECORDED_CONVERSATIONS.slice(0, 2).map((name) => readRecordedTrace(data, name));

  it.each([20, 100])("reuse more by our plan than by Alg. 4 and 5, and that more than online, at k = %i", (k) => {
    const batch = new RecordedBatch(traces, k, encodeO200k);
    const [retrieval = [], online = [], contextPilot = [], ours = []] = ordersOf(batch);
    for (const capacity of [batch.promptTokens / 4, batch.memoryTokens / 4]) {
      const [least, less, more, most] = [retrieval, online, contextPilot, ours].map((arm) =>
        batch.hitRatio(arm, new SimulatedCache("blocks", { capacityTokens: capacity })),
      ) as [number, number, number, number];
      expect(less).toBeGreaterThan(least);
      expect(more).toBeGreaterThan(less);
      expect(most).toBeGreaterThan(1.03 * more);
    }
    // Executed depth first: a cache with room for three prompts does as well as one that forgets nothing.
    const few = (3 * batch.promptTokens) / batch.requests.length;
    expect(batch.hitRatio(ours, new SimulatedCache("blocks", { capacityTokens: few }))).toBeGreaterThan(
      0.98 * batch.hitRatio(ours, new SimulatedCache("blocks", { capacityTokens: batch.promptTokens })),
    );
  });

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
