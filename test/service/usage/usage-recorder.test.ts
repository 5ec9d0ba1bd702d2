import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ENGINE_MODELS, type RequestId, type UserId } from "../../../src/core/index.js";
import type { ObservedReport } from "../../../src/service/base/memprefix-observer.js";
import { UsageRecorder } from "../../../src/service/usage/usage-recorder.js";
import { type StoreFault, StoreUnavailableError } from "../../../src/store/api/store.js";
import type { UsageLog } from "../../../src/store/api/usage-log.js";
import { threadedUsageLog } from "../../../src/store/usage/threaded-usage-log.js";
import { composed } from "../../store/usage/usage-entries.js";
import { observedCompose } from "./observed-compose.js";

/** A usage log whose batches are rejected for a while. */
function failingLog() {
  const log = threadedUsageLog({ file: ":memory:" });
  const failing = { fault: null as StoreFault | null, handedOver: [] as unknown[] };
  const record: UsageLog["record"] = async (batch, now) => {
    failing.handedOver.push(batch);
    if (failing.fault !== null) throw new StoreUnavailableError(failing.fault);
    return log.record(batch, now);
  };
  return Object.assign(failing, { ...log, record });
}

describe("the recorder", () => {
  let now = 1_000_000;
  let log: ReturnType<typeof failingLog>;
  let recorder: UsageRecorder;
  const faults: unknown[] = [];
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    faults.length = 0;
    log = failingLog();
    const onFault = (error: unknown) => faults.push(error);
    recorder = new UsageRecorder({ log, now: () => now, costs: ENGINE_MODELS.hosted, onFault });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await log.close();
  });
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      now += 1_000;
      await vi.advanceTimersByTimeAsync(1_000);
      await recorder.flush();
    }
  };
  const ids = async () =>
    (await log.prompts({ tenant: "default" }, null, 50)).rows.map(({ requestId }) => requestId).sort();

  it("hands over again, as it is, what could not be written, and drops none of it", async () => {
    log.fault = "unreachable";
    recorder.composed(observedCompose("r1", now));
    await pass(3_000);
    recorder.composed(observedCompose("r2", now));
    await pass(3_000);
    expect(faults.length).toBeGreaterThan(1);
    expect(new Set(log.handedOver).size).toBe(1);
    expect(recorder.dropped).toBe(0);
    log.fault = null;
    await pass(1_000);
    expect(await ids()).toEqual(["r1", "r2"]);
    expect(recorder.dropped).toBe(0);
  });

  it("leaves out what it cannot write for minutes, or because the log is damaged, and counts it", async () => {
    log.fault = "unreachable";
    recorder.composed(observedCompose("r1", now));
    await pass(6 * 60_000);
    expect(recorder.dropped).toBe(1);
    log.fault = "damaged";
    recorder.composed(observedCompose("r2", now));
    await pass(1_000);
    expect(recorder.dropped).toBe(2);
    log.fault = null;
    recorder.composed(observedCompose("r3", now));
    await pass(1_000);
    expect(await ids()).toEqual(["r3"]);
  });

  it("takes a chat's tools for no part of the prompt, but for one of the provider's minimum", async () => {
    const prompt = observedCompose("r1", now);
    const plan = { ...prompt.plan, totalTokens: 1_000, expectedCachedTokens: 800, uncachedTokens: 200 };
    const users = ["ana", "ben", "cem"];
    for (const user of users) recorder.composed({ ...observedCompose("r1", now, user), plan, besideTokens: 500 });
    // Of each the engine had the tools: it was restarted, and they are everybody's.
    for (const user of users)
      recorder.reported({
        scope: { tenant: "default", userId: user as UserId, agentId: null },
        feedback: {
          requestId: "r1" as RequestId,
          expectedCachedTokens: 800,
          observedCachedTokens: 0,
          difference: -800,
          corrected: { tokensRemoved: 0 },
        },
        report: { cachedTokens: 500, promptTokens: 1_500 },
        besideTokens: 500,
        isFirstTime: false,
        model: null,
      });
    await pass(1_000);
    const { total, notes } = await log.summary({ tenant: "default", window: "hour", now });
    expect(total.sums).toMatchObject({
      prompts: 3,
      belowMinimumPrompts: 0,
      missedTokens: 2_400,
      uncachedTokens: 3_000,
    });
    expect(notes).toMatchObject([{ kind: "engine_restart" }]);
  });

  it("records a report after the prompt that another process composed, and writes shortly before", async () => {
    const report: ObservedReport = {
      scope: { tenant: "default", userId: "ana" as UserId, agentId: null },
      feedback: {
        requestId: "other" as RequestId,
        expectedCachedTokens: 0,
        observedCachedTokens: 1_000,
        difference: 1_000,
        corrected: { tokensRemoved: 0 },
      },
      report: { cachedTokens: 1_000, promptTokens: 2_000 },
      besideTokens: 0,
      isFirstTime: false,
      model: null,
    };
    recorder.reported(report);
    await pass(1_000);
    await log.record([composed({ request: "other", at: now })], now);
    await pass(2_000);
    const { rows } = await log.prompts({ tenant: "default" }, null, 9);
    expect(rows).toMatchObject([{ requestId: "other", usage: { report: { cachedTokens: 1_000 } } }]);
  });
});
