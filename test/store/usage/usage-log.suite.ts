import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type RequestId, type UserId, uncachedTokens } from "../../../src/core/index.js";
import type { UsageBounds, UsageEntry, UsageLog } from "../../../src/store/api/usage-log.js";
import { composed, reported } from "./usage-entries.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Somewhere within a minute, an hour and a day. */
const NOW = Date.UTC(2026, 10, 20, 13, 37, 11);
const BOUNDS: UsageBounds = { prompts: 1_000, days: 31, notes: 5 };

const ana = "ana" as UserId;

/** What every usage log does. `open` makes an empty one. */
export function usageLogSuite(open: (bounds: UsageBounds) => Promise<UsageLog>): void {
  let log: UsageLog;
  const reopened: UsageLog[] = [];
  beforeEach(async () => {
    log = await open(BOUNDS);
  });
  afterEach(async () => {
    await Promise.all([log, ...reopened.splice(0)].map((each) => each.close()));
  });
  /** All prompts that are then kept, oldest first. */
  const record = async (...batch: UsageEntry[]) => {
    await log.record(batch, NOW);
    const pages = await Promise.all(["default", "acme"].map((tenant) => log.prompts({ tenant }, null, 50)));
    return pages.flatMap(({ rows }) => rows.toReversed());
  };
  const hour = (tenant = "default") => log.summary({ tenant, window: "hour", now: NOW });
  const ids = async (filter: object = {}) =>
    (await log.prompts({ tenant: "default", ...filter }, null, 50)).rows.map(({ requestId }) => requestId);

  describe("prompts", () => {
    it("are given back as they were recorded, with the engine's report", async () => {
      const [row] = await record(
        composed({ request: "r1", at: NOW, conversation: "c", agent: "guide", expected: 1_500 }),
        reported({ request: "r1", agent: "guide", cached: 500, prompt: 2_000, ms: 120.5, model: "sonnet" }),
      );
      expect(row).toMatchObject({
        requestId: "r1",
        userId: "ana",
        agentId: "guide",
        conversationId: "c",
        model: "sonnet",
        engine: "openai",
        layout: "conversation",
        at: NOW,
        usage: {
          promptTokens: 2_000,
          expectedTokens: 1_500,
          report: { cachedTokens: 500, promptTokens: 2_000 },
          firstTokenMs: 120.5,
          planned: null,
          miss: { cause: "unknown", tokens: 1_000 },
        },
      });
      // 2,000 at 1 each, against 500 read at 0.1 and 1,500 written at 1.25.
      expect(row?.savedMoney).toBeCloseTo(2_000 - 50 - 1_875);
      const key = { tenant: "default", userId: ana, requestId: "r1" as RequestId };
      expect(await log.prompt({ ...key, agentId: "guide" as never })).toEqual(row);
      expect(await log.prompt({ ...key, agentId: null })).toBeNull();
      expect(await log.prompt({ ...key, tenant: "acme", agentId: "guide" as never })).toBeNull();
    });

    it("take a report that comes in a later batch, and again", async () => {
      await record(composed({ request: "r1", at: NOW, expected: 1_500 }));
      await record(reported({ request: "r1", cached: 0, ms: 100 }));
      expect((await hour()).total.sums).toMatchObject({ reportedCachedTokens: 0, missedTokens: 1_500 });
      const [again] = await record(reported({ request: "r1", cached: 1_536 }));
      expect(again?.usage).toMatchObject({ report: { cachedTokens: 1_536 }, firstTokenMs: 100, miss: null });
      expect((await hour()).total).toMatchObject({
        sums: { prompts: 1, reportedPrompts: 1, reportedCachedTokens: 1_536, missedTokens: 0, timedPrompts: 1 },
        times: new Map([[expect.any(Number), 1]]),
      });
      expect(await ids({ cause: "unknown" })).toEqual([]);
    });

    it("count under the model that a report names, and no longer under another", async () => {
      await record(composed({ request: "r1", at: NOW, model: "unknown" }));
      await record(reported({ request: "r1", cached: 0, model: "sonnet" }));
      expect((await hour()).groups.map(({ group, sums }) => [group.model, sums.prompts])).toEqual([["sonnet", 1]]);
    });

    it("leave out reports of prompts that are not known", async () => {
      expect(await record(reported({ request: "r9", cached: 10 }))).toEqual([]);
      await record(composed({ request: "r1", at: NOW }));
      const others = [{ tenant: "acme" }, { user: "ben" }].map((of) => reported({ request: "r1", cached: 10, ...of }));
      expect(await record(...others)).toMatchObject([{ requestId: "r1", usage: { report: null } }]);
    });

    it("that are withdrawn are gone, also from the sums", async () => {
      await record(composed({ request: "r1", at: NOW }), composed({ request: "r2", at: NOW }));
      const withdrawn = { kind: "withdrawn", tenant: "default", userId: ana, agentId: null } as const;
      await record({ ...withdrawn, requestId: "r1" as RequestId }, { ...withdrawn, requestId: "r9" as RequestId });
      expect(await ids()).toEqual(["r2"]);
      expect((await hour()).total.sums.prompts).toBe(1);
    });

    it("count once where a request id is used again", async () => {
      await record(
        composed({ request: "r1", at: NOW - 5, prompt: 2_000 }),
        composed({ request: "r1", at: NOW, prompt: 3_000 }),
      );
      expect(await ids()).toEqual(["r1"]);
    });

    it("are listed newest first, in pages, by every filter", async () => {
      const rewritten = "history_changed";
      await record(
        composed({ request: "a1", at: NOW, conversation: "c" }),
        composed({ request: "a2", at: NOW, conversation: "c", missed: 1_000, cause: rewritten }),
        composed({ request: "b1", at: NOW, user: "ben", model: "opus", engine: "anthropic" }),
        composed({ request: "b2", at: NOW, user: "ben", missed: 900, cause: rewritten }),
        composed({ request: "g1", at: NOW, agent: "guide", conversation: "c" }),
        composed({ request: "x1", at: NOW, tenant: "acme" }),
      );
      expect(await ids()).toEqual(["g1", "b2", "b1", "a2", "a1"]);
      expect(await ids({ userId: "ana" })).toEqual(["g1", "a2", "a1"]);
      expect(await ids({ userId: "ana", agentId: "guide" })).toEqual(["g1"]);
      expect(await ids({ userId: "ana", conversationId: "c" })).toEqual(["g1", "a2", "a1"]);
      expect(await ids({ userId: "ana", cause: "history_changed" })).toEqual(["a2"]);
      expect(await ids({ cause: "history_changed" })).toEqual(["b2", "a2"]);
      expect(await ids({ model: "opus" })).toEqual(["b1"]);
      expect(await ids({ layout: "single" })).toEqual(["b2", "b1"]);
      expect(await ids({ engine: "openai", layout: "single" })).toEqual(["b2"]);
      expect(await ids({ cause: "history_changed", layout: "single" })).toEqual(["b2"]);
      expect(await ids({ userId: "ana", model: "opus" })).toEqual([]);
      expect(await ids({ userId: "nobody" })).toEqual([]);
      for (const filter of [{}, { userId: ana }, { cause: "history_changed" as const }, { engine: "openai" }]) {
        const all = await ids(filter);
        const paged: string[] = [];
        for (let before: number | null | undefined; before !== null; ) {
          const page = await log.prompts({ tenant: "default", ...filter }, before ?? null, 1);
          paged.push(...page.rows.map(({ requestId }) => requestId));
          before = page.next;
        }
        expect(paged, JSON.stringify(filter)).toEqual(all);
      }
    });
  });

  describe("sums", () => {
    it("are per step, model and window, and of one tenant", async () => {
      await record(
        composed({ request: "old", at: NOW - 40 * DAY }),
        composed({ request: "month", at: NOW - 20 * DAY, model: "opus" }),
        composed({ request: "day", at: NOW - 5 * HOUR }),
        composed({ request: "now", at: NOW, expected: 1_024 }),
        composed({ request: "other", at: NOW, tenant: "acme" }),
      );
      const summary = await hour();
      expect(summary.to - summary.from).toBe(HOUR);
      expect(summary.to).toBeGreaterThan(NOW);
      expect(summary.total.sums).toMatchObject({ prompts: 1, promptTokens: 2_000, expectedTokens: 1_024 });
      expect([...summary.points.keys()]).toEqual([NOW - (NOW % MINUTE)]);
      const of = async (window: "day" | "month", model?: string) =>
        (await log.summary({ tenant: "default", window, now: NOW, model })).total.sums.prompts;
      expect([await of("day"), await of("month"), await of("month", "opus"), await of("day", "opus")]).toEqual([
        2, 3, 1, 0,
      ]);
      const month = await log.summary({ tenant: "default", window: "month", now: NOW });
      expect(month.groups.map(({ group, sums }) => [group.model, sums.prompts]).sort()).toEqual([
        ["gpt", 2],
        ["opus", 1],
      ]);
      expect((await hour("acme")).total.sums.prompts).toBe(1);
      expect((await hour("nobody")).total.sums.prompts).toBe(0);
    });

    it("keep prompts below the minimum, and expired ones, out of the shares", async () => {
      await record(
        composed({ request: "short", at: NOW, prompt: 600 }),
        {
          ...composed({ request: "late", at: NOW }),
          usage: composed({ request: "", at: 0, missed: 900, cause: "expired" }).usage,
        },
        composed({ request: "plain", at: NOW, expected: 1_500 }),
        reported({ request: "plain", cached: 1_500, prompt: 2_000 }),
      );
      expect((await hour()).total.sums).toMatchObject({
        prompts: 3,
        promptTokens: 4_600,
        sharedPromptTokens: 2_000,
        sharedReportedCachedTokens: 1_500,
        belowMinimumPrompts: 1,
        belowMinimumTokens: 600,
        expiredPrompts: 1,
        expiredTokens: 2_000,
      });
    });

    it("count misses by cause, with what they cost", async () => {
      await record(
        composed({ request: "r1", at: NOW, missed: 1_000, cause: "history_changed" }),
        composed({ request: "r2", at: NOW, missed: 500, cause: "instructions_changed" }),
        composed({ request: "r3", at: NOW, expected: 1_500 }),
        reported({ request: "r3", cached: 0, because: "restarted" }),
      );
      const { causes } = await log.misses({ tenant: "default", window: "hour", now: NOW });
      const price = 1.25 - 0.1;
      expect(causes.toSorted((a, b) => b.tokens - a.tokens)).toEqual([
        { cause: "restarted", prompts: 1, tokens: 1_500, money: expect.closeTo(1_500 * price) },
        { cause: "history_changed", prompts: 1, tokens: 1_000, money: expect.closeTo(1_000 * price) },
        { cause: "instructions_changed", prompts: 1, tokens: 500, money: expect.closeTo(500 * price) },
      ]);
      expect((await log.misses({ tenant: "acme", window: "month", now: NOW })).causes).toEqual([]);
    });

    it("count a tenant's models past the bound as one", async () => {
      const tokens = (n: number) => 2_000 - n;
      const models = Array.from({ length: 60 }, (_, n) =>
        composed({ request: `r${n}`, at: NOW, model: `m${n}`, prompt: tokens(n) }),
      );
      await log.record(models, NOW);
      const { groups, total } = await hour();
      expect(groups).toHaveLength(51);
      expect(groups.find(({ group }) => group.model === "other")?.sums.prompts).toBe(10);
      expect(groups.find(({ group }) => group.model === "m49")?.sums.prompts).toBe(1);
      expect(total.sums.prompts).toBe(60);
    });

    it("are those of the prompts, in any order of prompts and reports", async () => {
      const said = fc.record({
        request: fc.constantFrom("1", "2", "3", "4", "5"),
        user: fc.constantFrom("ana", "ben"),
        tenant: fc.constantFrom("default", "acme"),
        conversation: fc.constantFrom(null, "c"),
        expected: fc.integer({ min: 0, max: 2_000 }),
        missed: fc.integer({ min: 0, max: 2_000 }),
        cached: fc.integer({ min: 0, max: 2_000 }),
        isReport: fc.boolean(),
        size: fc.integer({ min: 1, max: 4 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(said, { minLength: 1, maxLength: 25 }), async (steps) => {
          const own = await open({ ...BOUNDS, prompts: 100_000 });
          try {
            let pending: UsageEntry[] = [];
            const seen = new Set<string>();
            for (const step of steps) {
              const key = JSON.stringify([step.tenant, step.user, step.request]);
              // A request that is composed again leaves the sums over time as they were.
              if (step.isReport) pending.push(reported(step));
              else if (!seen.has(key)) pending.push(composed({ ...step, at: NOW }));
              if (!step.isReport) seen.add(key);
              if (pending.length < step.size) continue;
              await own.record(pending, NOW);
              pending = [];
            }
            await own.record(pending, NOW);
            for (const tenant of ["default", "acme"]) {
              const { rows } = await own.prompts({ tenant }, null, 100);
              const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((all, row) => all + of(row), 0);
              const expected = {
                prompts: rows.length,
                promptTokens: sum(({ usage }) => usage.promptTokens),
                uncachedTokens: sum(({ usage }) => uncachedTokens(usage)),
                missedTokens: sum(({ usage }) => usage.miss?.tokens ?? 0),
              };
              const { total } = await own.summary({ tenant, window: "day", now: NOW });
              expect(total.sums).toMatchObject(expected);
              expect(total.sums.savedMoney).toBeCloseTo(
                sum(({ savedMoney }) => savedMoney ?? 0),
                4,
              );
              const { causes } = await own.misses({ tenant, window: "month", now: NOW });
              expect(causes.reduce((all, { tokens }) => all + tokens, 0)).toBe(expected.missedTokens);
            }
          } finally {
            await own.close();
          }
        }),
        { numRuns: 25 },
      );
    });
  });

  describe("users", () => {
    it("that are deleted are gone, also from what is recorded late", async () => {
      const late = composed({ request: "2", at: NOW - 1 });
      await record(composed({ request: "1", at: NOW - 2, conversation: "c", missed: 100, cause: "history_changed" }));
      await record(
        composed({ request: "1", at: NOW - 2, tenant: "acme" }),
        composed({ request: "b", at: NOW - 2, user: "ben" }),
      );
      await log.deleteUser("default", ana, NOW);
      await record(late, reported({ request: "1", cached: 10 }));
      expect(await ids()).toEqual(["b"]);
      expect(await ids({ cause: "history_changed" })).toEqual([]);
      expect(await log.exportUser("default", ana)).toEqual([]);
      expect(await log.exportUser("acme", ana)).toHaveLength(1);
      await record(composed({ request: "3", at: NOW + 1 }));
      expect(await log.exportUser("default", ana)).toMatchObject([{ requestId: "3" }]);
    });
  });

  describe("bounds", () => {
    it("keep so many prompts, the newest", async () => {
      const small = await open({ ...BOUNDS, prompts: 10 });
      reopened.push(small);
      for (let n = 0; n < 30; n++)
        await small.record(
          [composed({ request: `r${n}`, at: NOW, user: n < 15 ? "ana" : "ben", conversation: `c${n}` })],
          NOW,
        );
      const { rows } = await small.prompts({ tenant: "default" }, null, 100);
      expect(rows.map(({ requestId }) => requestId)).toEqual(Array.from({ length: 10 }, (_, n) => `r${29 - n}`));
      expect((await small.summary({ tenant: "default", window: "hour", now: NOW })).total.sums.prompts).toBe(10);
    });

    it("remove prompts that are too old", async () => {
      await record(composed({ request: "old", at: NOW - 32 * DAY, missed: 500, cause: "history_changed" }));
      await record(composed({ request: "new", at: NOW }));
      expect(await ids()).toEqual(["new"]);
      expect(await ids({ cause: "history_changed" })).toEqual([]);
      await log.record([], NOW + 40 * DAY);
      expect(await ids()).toEqual([]);
      expect((await log.summary({ tenant: "default", window: "month", now: NOW })).total.sums.prompts).toBe(0);
    });
  });

  it("keeps notes of a tenant and of all, so many, in the window", async () => {
    const note = (label: string, tenant: string | null, at = NOW) =>
      log.note({ tenant, at, kind: "deploy", label, model: null });
    for (let n = 0; n < 8; n++) await note(`n${n}`, "default", NOW - 8 + n);
    await note("ours", null);
    await note("theirs", "acme");
    await note("long ago", "default", NOW - 2 * HOUR);
    const labels = (await hour()).notes.map(({ label }) => label);
    expect(labels).toEqual(["n4", "n5", "n6", "n7", "ours"]);
    expect((await hour("nobody")).notes.map(({ label }) => label)).toEqual(["ours"]);
  });

  it("remembers a text under a name", async () => {
    expect(await log.replaceMark("defaults", "a")).toBeNull();
    expect(await log.replaceMark("defaults", "b")).toBe("a");
    expect(await log.replaceMark("other", "c")).toBeNull();
  });
}
