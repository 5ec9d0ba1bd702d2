import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ENGINE_MODELS } from "../../../src/core/index.js";
import { type Alert, type AlertRule, AlertWatch, alertFile } from "../../../src/service/usage/usage-alerts.js";
import { UsageRecorder } from "../../../src/service/usage/usage-recorder.js";
import type { UsageLog } from "../../../src/store/api/usage-log.js";
import { threadedUsageLog } from "../../../src/store/usage/threaded-usage-log.js";
import { composed, reported } from "../../store/usage/usage-entries.js";

const MINUTE = 60_000;
const START = Date.UTC(2026, 10, 20, 12, 0, 30);

describe("alerts", () => {
  let log: UsageLog;
  let now = START;
  let requests = 0;
  const alerts: Alert[] = [];
  const faults: unknown[] = [];
  beforeEach(() => {
    log = threadedUsageLog({ file: ":memory:" });
    now = START;
    alerts.length = 0;
    faults.length = 0;
  });
  afterEach(() => log.close());

  const onFault = (error: unknown) => faults.push(error);
  const watch = (...rules: object[]) =>
    watchBy(
      async (alert) => {
        alerts.push(alert);
        return true;
      },
      ...rules,
    );
  /** As another process on the same log does. */
  const watchBy = (onAlert: (alert: Alert) => Promise<boolean>, ...rules: object[]) => {
    const recorder = new UsageRecorder({ log, now: () => now, costs: ENGINE_MODELS.hosted, onFault });
    const read: readonly AlertRule[] = alertFile.parse({ rules }).rules;
    return new AlertWatch({ rules: read, log, recorder, now: () => now, onAlert, onFault });
  };
  /** Prompts of which so many tokens of 2,000 were cached. */
  const served = async (count: number, cached: number, model = "sonnet", tenant = "default") => {
    for (let n = 0; n < count; n++) {
      const request = `r-${requests++}`;
      const entries = [
        composed({ tenant, request, at: now, model }),
        reported({ tenant, request, cached, prompt: 2_000, ms: cached === 0 ? 900 : 90 }),
      ];
      await log.record(entries, now);
    }
  };
  const fell = { name: "sonnet-fell", measure: "cached_share", model: "sonnet", falls_by: 0.33 };

  it("fire where a model's cached share fell by a third within an hour, once, and end", async () => {
    const watching = watch(fell);
    await served(30, 1_800);
    await watching.evaluate();
    now += 60 * MINUTE;
    await served(30, 1_100);
    await watching.evaluate();
    await watching.evaluate();
    expect(alerts).toMatchObject([
      { isFiring: true, value: 0.55, reference: 0.9, at: now, rule: { name: "sonnet-fell" } },
    ]);
    expect(watching.statesOf("default")).toMatchObject([{ isFiring: true, since: now }]);
    expect(watching.statesOf("acme")).toEqual([]);
    now += 60 * MINUTE;
    await served(30, 1_100);
    await watching.evaluate();
    expect(alerts.map(({ isFiring }) => isFiring)).toEqual([true, false]);
    const { notes } = await log.summary({ tenant: "default", window: "day", now });
    expect(notes.map(({ kind, label, model }) => [kind, label, model])).toEqual([
      ["alert", "sonnet-fell", "sonnet"],
      ["alert", "sonnet-fell has ended", "sonnet"],
    ]);
    expect(faults).toEqual([]);
  });

  it("do not fire by less, by other models, by other tenants, or by too few prompts", async () => {
    const watching = watch(fell);
    await served(30, 1_800);
    await served(30, 1_800, "opus");
    await served(30, 1_800, "sonnet", "acme");
    now += 60 * MINUTE;
    await served(30, 1_300);
    await served(30, 0, "opus");
    await served(30, 0, "sonnet", "acme");
    await watching.evaluate();
    expect(watching.states).toMatchObject([{ value: 0.65, reference: 0.9 }]);
    now += 60 * MINUTE;
    await served(19, 0);
    await watching.evaluate();
    expect(watching.states).toMatchObject([{ value: null }]);
    expect(alerts).toEqual([]);
  });

  it("go on while nothing is known", async () => {
    const watching = watch({ name: "low", measure: "cached_share", below: 0.5 });
    await served(30, 100);
    await watching.evaluate();
    now += 24 * 60 * MINUTE;
    await watching.evaluate();
    expect(watching.states).toMatchObject([{ isFiring: true, value: null }]);
    expect(alerts).toHaveLength(1);
  });

  describe("of several processes on one log", () => {
    const low = { name: "low", measure: "cached_share", below: 0.5 };

    it("are told once, when they begin and when they end, and are known to all", async () => {
      const watching = [watch(low), watch(low), watch(low)];
      const evaluate = () => Promise.all(watching.map((each) => each.evaluate()));
      await served(30, 100);
      await evaluate();
      const since = now;
      now += MINUTE;
      await evaluate();
      expect(alerts).toMatchObject([{ isFiring: true, at: since }]);
      for (const { states } of watching) expect(states).toMatchObject([{ isFiring: true, since }]);
      now += 60 * MINUTE;
      await served(30, 1_900);
      await evaluate();
      expect(alerts.map(({ isFiring }) => isFiring)).toEqual([true, false]);
      for (const { states } of watching) expect(states).toMatchObject([{ isFiring: false, since: null }]);
      const { notes } = await log.summary({ tenant: "default", window: "day", now });
      expect(notes.map(({ label }) => label)).toEqual(["low", "low has ended"]);
      // One that starts later finds it as it is.
      await watch(low).evaluate();
      expect(alerts).toHaveLength(2);
    });

    it("are told by another where the one that is to tell dies first", async () => {
      const dying = watchBy(() => new Promise(() => {}), low);
      const other = watch(low);
      await served(30, 100);
      await dying.evaluate();
      now += MINUTE;
      await other.evaluate();
      expect(alerts).toEqual([]);
      now += 2 * MINUTE;
      await other.evaluate();
      await other.evaluate();
      expect(alerts).toMatchObject([{ isFiring: true, at: START }]);
      now += 10 * MINUTE;
      await other.evaluate();
      expect(alerts).toHaveLength(1);
    });

    it("are told by another where the one that is to tell is stopped, and not again once it was told", async () => {
      const stopping = watchBy(async () => false, low);
      await served(30, 100);
      await stopping.evaluate();
      await stopping.stop();
      now += 3 * MINUTE;
      const [slow, other] = [watch(low), watch(low)];
      await slow.evaluate();
      await slow.stop();
      now += 10 * MINUTE;
      await other.evaluate();
      expect(alerts).toHaveLength(1);
      expect(faults).toEqual([]);
    });

    it("are not taken back by one that looked a moment later", async () => {
      const [one, two] = [watch(low), watch(low)];
      await served(30, 990);
      await one.evaluate();
      await served(10, 1_900);
      now += 10_000;
      await two.evaluate();
      expect(alerts).toHaveLength(1);
      expect(two.states).toMatchObject([{ isFiring: true }]);
      now += MINUTE;
      await two.evaluate();
      expect(alerts.map(({ isFiring }) => isFiring)).toEqual([true, false]);
    });

    it("are of a rule as it stands: one that was changed begins anew", async () => {
      await served(30, 100);
      await watch(low).evaluate();
      await watch({ ...low, below: 0.6 }).evaluate();
      expect(alerts.map(({ rule }) => rule.below)).toEqual([0.5, 0.6]);
    });
  });

  it("watch the time to the first token, and what missed", async () => {
    const watching = watch(
      { name: "slow", measure: "first_token_p95_ms", rises_by: 1, within_minutes: 15 },
      { name: "missed", measure: "missed_tokens", above: 10, min_prompts: 1 },
    );
    await served(30, 1_800);
    now += 15 * MINUTE;
    await served(30, 0);
    const missing = composed({ request: "m", at: now, reusable: 900, facts: { isRewritten: true } });
    await log.record([missing], now);
    await watching.evaluate();
    expect(alerts.map(({ rule }) => rule.name)).toEqual(["slow", "missed"]);
  });

  it.each([
    ["no limit", { name: "a", measure: "cached_share" }],
    ["two limits", { ...fell, below: 0.5 }],
    ["an unknown measure", { ...fell, measure: "luck" }],
    ["an unknown field", { ...fell, falls: 1 }],
    ["minutes that are no quarter of an hour", { ...fell, within_minutes: 20 }],
  ])("take no rule with %s", (_what, rule) => {
    expect(alertFile.safeParse({ rules: [rule] }).success).toBe(false);
    expect(alertFile.safeParse({ rules: [fell, fell] }).success).toBe(false);
    expect(alertFile.safeParse({ rules: [fell] }).success).toBe(true);
  });
});
