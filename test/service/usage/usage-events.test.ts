import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { MAX_LIVE_PROMPTS, UsageEvents } from "../../../src/service/usage/usage-events.js";
import { StoreUnavailableError } from "../../../src/store/api/store.js";
import type { UsageChanges, UsageLog } from "../../../src/store/api/usage-log.js";
import { threadedUsageLog } from "../../../src/store/usage/threaded-usage-log.js";
import { composed } from "../../store/usage/usage-entries.js";

describe("the events of a log", () => {
  let now = 1_000_000;
  let log: UsageLog;
  let events: UsageEvents;
  let isAway = false;
  let isEnded = false;
  const faults: unknown[] = [];
  const told: string[] = [];
  const listener = {
    tell: ({ rows }: UsageChanges) => {
      for (const { requestId } of rows) told.push(requestId);
    },
    end: () => {
      isEnded = true;
    },
  };
  const followed = { filter: { tenant: "default" }, limit: 5 };
  /** While a call waits, others go on; the reader of changes is asked again meanwhile by nobody. */
  let gate: Promise<void> = Promise.resolve();
  let asked = 0;
  let waiting = 0;
  let flushes = 0;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    log = threadedUsageLog({ file: ":memory:" });
    isAway = isEnded = false;
    gate = Promise.resolve();
    asked = waiting = flushes = 0;
    faults.length = told.length = 0;
    const changes: UsageLog["changes"] = async (since, of) => {
      asked++;
      await gate;
      if (isAway) throw new StoreUnavailableError("unreachable");
      return log.changes(since, of);
    };
    events = new UsageEvents({
      log: { changes } as UsageLog,
      recorder: {
        get waiting() {
          return waiting;
        },
        flush: async () => {
          flushes++;
        },
      },
      now: () => now,
      onFault: (error) => faults.push(error),
    });
  });
  afterEach(async () => {
    events.stop();
    vi.useRealTimers();
    await log.close();
  });
  const record = (request: string) => log.record([composed({ request, at: now })], now);
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 50) {
      now += 50;
      await vi.advanceTimersByTimeAsync(50);
    }
  };

  it("begin where the first listener does, however many come at once, and end with the last", async () => {
    await record("before");
    const stops = await Promise.all([events.listen(followed, listener), events.listen(followed, { ...listener })]);
    expect(asked).toBe(1);
    await record("a");
    await pass(300);
    expect(told).toEqual(["a", "a"]);
    for (const stop of stops) stop?.();
    const before = asked;
    await record("b");
    await pass(2_000);
    expect(asked).toBe(before);
    await events.listen(followed, listener);
    await record("c");
    await pass(300);
    expect(told).toEqual(["a", "a", "c"]);
  });

  it("have what waits written at once where it is little, and not before its time where it is much", async () => {
    await events.listen(followed, listener);
    waiting = MAX_LIVE_PROMPTS;
    await pass(1_000);
    expect(flushes).toBe(4);
    waiting = MAX_LIVE_PROMPTS + 1;
    await pass(1_000);
    expect(flushes).toBe(4);
    await record("a");
    await pass(300);
    expect(told).toEqual(["a"]);
  });

  it("lose nothing for one who comes while the log is asked", async () => {
    await events.listen({ ...followed, limit: 4 }, { tell: () => {}, end: () => {} });
    let open = () => {};
    gate = new Promise((resolve) => {
      open = resolve;
    });
    await pass(300);
    const joining = events.listen(followed, listener);
    gate = Promise.resolve();
    open();
    await joining;
    await record("a");
    await pass(600);
    expect(told).toEqual(["a"]);
  });

  it("go on where they were once the log is there again, and say that it was away once", async () => {
    await events.listen(followed, listener);
    isAway = true;
    await record("a");
    await pass(20_000);
    expect(faults).toHaveLength(1);
    isAway = false;
    await pass(2_000);
    expect(told).toEqual(["a"]);
    expect(isEnded).toBe(false);
  });

  it("end where the log was away for so long that there is too much to catch up on", async () => {
    await events.listen(followed, listener);
    isAway = true;
    await pass(70_000);
    isAway = false;
    await pass(2_000);
    expect(isEnded).toBe(true);
    expect(told).toEqual([]);
  });

  it("are not begun where the log is away: whoever asks is told", async () => {
    isAway = true;
    await expect(events.listen(followed, listener)).rejects.toThrow(StoreUnavailableError);
    isAway = false;
    await events.listen(followed, listener);
    await record("a");
    await pass(300);
    expect(told).toEqual(["a"]);
  });
});
