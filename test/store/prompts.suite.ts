import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type TurnId, uncachedTokens } from "../../src/core/index.js";
import type { Database } from "../../src/store/database.js";
import type { PromptTable } from "../../src/store/prompt-figures.js";
import { promptsIn, promptUpdate } from "../../src/store/prompts.js";
import { figuresOf, keyOf, type SaidPrompt, SaidPrompts, type SaidRow } from "./said-prompts.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Somewhere within a minute, an hour and a day. */
const NOW = Date.UTC(2026, 10, 20, 13, 37, 11);

type TriedDatabase = Pick<Database, "read" | "readAside" | "write" | "close">;

/** What the table `prompts` does in every database. `open` makes an empty one. */
export function describePrompts(name: string, open: () => Promise<TriedDatabase>): void {
  describe(name, () => {
    let database: TriedDatabase;
    let prompts: PromptTable;
    let said: SaidPrompts;
    beforeEach(async () => {
      database = await open();
      prompts = promptsIn(database);
      said = new SaidPrompts();
    });
    afterEach(() => database.close());
    const store = async (...all: readonly SaidPrompt[]): Promise<SaidRow[]> => {
      const rows = all.map((each) => said.composed(each));
      await database.write(rows.flatMap(({ statements }) => statements));
      return rows;
    };
    const one = async (each: SaidPrompt): Promise<SaidRow> => (await store(each))[0] as SaidRow;
    const update = ({ scopeId, turnId }: SaidRow, to: SaidPrompt) =>
      database.write([promptUpdate(scopeId, turnId, figuresOf(to))]);
    const hour = (tenant = "default") => prompts.summary({ tenant, window: "hour", now: NOW });
    const ids = async (filter: object = {}) =>
      (await prompts.page({ tenant: "default", ...filter }, null, 50)).rows.map(({ requestId }) => requestId);

    describe("prompts", () => {
      it("are given back as they were stored", async () => {
        const wanted = { request: "r1", at: NOW, conversation: "c", agent: "guide", cached: 500, ms: 120.5, missed: 9 };
        await store(wanted);
        const row = await prompts.prompt(keyOf(wanted));
        expect(row).toEqual({
          ...keyOf(wanted),
          ...figuresOf(wanted),
          id: expect.any(Number),
          conversationId: "c",
          at: NOW,
          engine: "openai",
          layout: "conversation",
          policy: "prefix-exact",
          retention: "keep",
          epoch: { began: null, prompts: 3 },
          byHand: { inMessage: 2_400, inSystem: 2_500 },
        });
        expect((await prompts.page({ tenant: "default" }, null, 50)).rows).toEqual([row]);
        for (const other of [{ agent: null }, { tenant: "acme" }, { user: "ben" }, { request: "r2" }])
          expect(await prompts.prompt(keyOf({ ...wanted, ...other }))).toBeNull();
      });

      it("count by their newest figures", async () => {
        const first = { request: "r1", at: NOW, model: "unknown" };
        const row = await one(first);
        await update(row, { ...first, model: "sonnet", cached: 0, missed: 1_500, ms: 100 });
        expect((await hour()).total.sums).toMatchObject({ reportedCachedTokens: 0, missedTokens: 1_500 });
        expect([...(await hour()).models].map(([model, { sums }]) => [model, sums.prompts])).toEqual([["sonnet", 1]]);
        await update(row, { ...first, cached: 1_536, ms: 100 });
        expect((await hour()).total).toMatchObject({
          sums: { prompts: 1, reportedPrompts: 1, reportedCachedTokens: 1_536, missedTokens: 0, timedPrompts: 1 },
          times: new Map([[expect.any(Number), 1]]),
        });
        expect(await ids({ cause: "unknown" })).toEqual([]);
      });

      it("change nothing where there is no such row", async () => {
        const { scopeId } = await one({ request: "r1", at: NOW });
        await update({ scopeId, turnId: 99 as TurnId }, { request: "r9", at: NOW, cached: 10 });
        expect(await ids()).toEqual(["r1"]);
        expect((await hour()).total.sums.reportedPrompts).toBe(0);
      });

      it("are the newest of a request id that is used again", async () => {
        await store({ request: "r1", at: NOW - 5, prompt: 2_000 }, { request: "r1", at: NOW, prompt: 3_000 });
        expect((await prompts.prompt(keyOf({ request: "r1" })))?.usage.promptTokens).toBe(3_000);
      });

      it("have a model's name that every database can store", async () => {
        await store(
          { request: "r1", at: NOW, model: "a\0b\ud800" },
          { request: "r2", at: NOW, model: "m".repeat(201) },
        );
        const { rows } = await prompts.page({ tenant: "default" }, null, 50);
        expect(rows.map(({ model }) => model)).toEqual(["other", "a\ufffdb\ufffd"]);
      });

      it("are listed newest first, in pages, by every filter", async () => {
        const cause = "history_changed";
        await store(
          { request: "a1", at: NOW, conversation: "c" },
          { request: "a2", at: NOW, conversation: "c", missed: 1_000, cause },
          { request: "b1", at: NOW, user: "ben", model: "opus", engine: "anthropic" },
          { request: "b2", at: NOW, user: "ben", missed: 900, cause },
          { request: "g1", at: NOW, agent: "guide", conversation: "c" },
          { request: "x1", at: NOW, tenant: "acme" },
        );
        expect(await ids()).toEqual(["g1", "b2", "b1", "a2", "a1"]);
        expect(await ids({ userId: "ana" })).toEqual(["g1", "a2", "a1"]);
        expect(await ids({ userId: "ana", agentId: "guide" })).toEqual(["g1"]);
        expect(await ids({ userId: "ana", agentId: null })).toEqual(["a2", "a1"]);
        expect(await ids({ userId: "ana", conversationId: "c" })).toEqual(["g1", "a2", "a1"]);
        expect(await ids({ userId: "ana", cause })).toEqual(["a2"]);
        expect(await ids({ cause })).toEqual(["b2", "a2"]);
        expect(await ids({ model: "opus" })).toEqual(["b1"]);
        expect(await ids({ userId: "ana", model: "opus" })).toEqual([]);
        for (const filter of [{}, { userId: "ana" as never }, { cause } as const, { model: "opus" }]) {
          const paged: string[] = [];
          for (let before: number | null | undefined; before !== null; ) {
            const page = await prompts.page({ tenant: "default", ...filter }, before ?? null, 1);
            paged.push(...page.rows.map(({ requestId }) => requestId));
            before = page.next;
          }
          expect(paged, JSON.stringify(filter)).toEqual(await ids(filter));
        }
      });
    });

    describe("sums", () => {
      it("are per step, model and window, and of one tenant", async () => {
        await store(
          { request: "old", at: NOW - 40 * DAY },
          { request: "month", at: NOW - 20 * DAY, model: "opus" },
          { request: "day", at: NOW - 5 * HOUR },
          { request: "now", at: NOW, expected: 1_024 },
          { request: "other", at: NOW, tenant: "acme" },
        );
        const summary = await hour();
        expect(summary.to - summary.from).toBe(HOUR);
        expect(summary.to).toBeGreaterThan(NOW);
        expect(summary.total.sums).toMatchObject({ prompts: 1, promptTokens: 2_000, expectedTokens: 1_024 });
        expect([...summary.points.keys()]).toEqual([NOW - (NOW % MINUTE)]);
        const count = async (window: "day" | "month", model?: string) =>
          (await prompts.summary({ tenant: "default", window, now: NOW, model })).total.sums.prompts;
        expect([await count("day"), await count("month")]).toEqual([2, 3]);
        expect([await count("day", "opus"), await count("month", "opus")]).toEqual([0, 1]);
        const month = await prompts.summary({ tenant: "default", window: "month", now: NOW });
        expect([...month.models].map(([model, { sums }]) => [model, sums.prompts]).sort()).toEqual([
          ["gpt", 2],
          ["opus", 1],
        ]);
        expect((await hour("acme")).total.sums.prompts).toBe(1);
        expect((await hour("nobody")).total.sums.prompts).toBe(0);
      });

      it("keep prompts that are set apart out of the shares", async () => {
        await store(
          { request: "short", at: NOW, prompt: 600, apart: "below_minimum", cached: 0 },
          { request: "late", at: NOW, missed: 900, cause: "expired", apart: "expired" },
          { request: "plain", at: NOW, expected: 1_500, cached: 1_400 },
        );
        expect((await hour()).total.sums).toMatchObject({
          ...{ prompts: 3, promptTokens: 4_600, reportedPrompts: 2, reportedPromptTokens: 2_600 },
          ...{ sharedPromptTokens: 2_000, sharedExpectedTokens: 1_500, sharedReportedPromptTokens: 2_000 },
          ...{ sharedReportedCachedTokens: 1_400, sharedReportedExpectedTokens: 1_500 },
          ...{ belowMinimumPrompts: 1, belowMinimumTokens: 600, expiredPrompts: 1, expiredTokens: 2_000 },
        });
      });

      it("count misses by cause, with what they cost", async () => {
        await store(
          { request: "r1", at: NOW, missed: 1_000, cause: "history_changed" },
          { request: "r2", at: NOW, missed: 500, cause: "history_changed" },
          { request: "r3", at: NOW, missed: 700, cause: "evicted" },
          { request: "r4", at: NOW },
        );
        const { causes } = await prompts.misses({ tenant: "default", window: "hour", now: NOW });
        expect(causes.toSorted((a, b) => b.tokens - a.tokens)).toEqual([
          { cause: "history_changed", prompts: 2, tokens: 1_500, money: expect.closeTo(1_350) },
          { cause: "evicted", prompts: 1, tokens: 700, money: expect.closeTo(630) },
        ]);
        expect((await prompts.misses({ tenant: "acme", window: "month", now: NOW })).causes).toEqual([]);
      });

      it("count a tenant's models past the bound as one", async () => {
        const models = Array.from({ length: 60 }, (_, n) => ({ request: `r${n}`, model: `m${n}`, prompt: 2_000 - n }));
        await store(...models.map((each) => ({ ...each, at: NOW })));
        const { models: shown, total } = await hour();
        expect(shown.size).toBe(51);
        expect(shown.get("other")?.sums.prompts).toBe(10);
        expect(shown.get("m49")?.sums.prompts).toBe(1);
        expect(total.sums.prompts).toBe(60);
      });

      it("are those of the rows", async () => {
        const anyPrompt = fc.record({
          request: fc.constantFrom("1", "2", "3"),
          user: fc.constantFrom("ana", "ben"),
          tenant: fc.constantFrom("default", "acme"),
          conversation: fc.constantFrom(null, "c"),
          at: fc.integer({ min: NOW - 3 * HOUR, max: NOW }),
          prompt: fc.integer({ min: 0, max: 3_000 }),
          missed: fc.integer({ min: 0, max: 2_000 }),
          cached: fc.constantFrom(undefined, 0, 100, 2_000),
        });
        await fc.assert(
          fc.asyncProperty(fc.array(anyPrompt, { minLength: 1, maxLength: 25 }), async (all) => {
            await prompts.sweep(NOW + 1, 0);
            await store(...(all as readonly SaidPrompt[]));
            for (const tenant of ["default", "acme"]) {
              const { rows } = await prompts.page({ tenant }, null, 100);
              const sum = (of: (row: (typeof rows)[number]) => number) =>
                rows.reduce((total, row) => total + of(row), 0);
              const missedTokens = sum(({ usage }) => usage.miss?.tokens ?? 0);
              const { total, points } = await prompts.summary({ tenant, window: "day", now: NOW });
              expect(total.sums).toMatchObject({
                prompts: rows.length,
                promptTokens: sum(({ usage }) => usage.promptTokens),
                uncachedTokens: sum(({ usage }) => uncachedTokens(usage)),
                missedTokens,
              });
              expect([...points.values()].reduce((count, { sums }) => count + sums.prompts, 0)).toBe(rows.length);
              const saved = sum(({ savedMoney }) => savedMoney ?? 0);
              expect(total.sums.savedMoney).toBeCloseTo(saved, 4);
              const { causes } = await prompts.misses({ tenant, window: "month", now: NOW });
              expect(causes.reduce((count, { tokens }) => count + tokens, 0)).toBe(missedTokens);
            }
          }),
          { numRuns: 25 },
        );
      });
    });

    describe("a sweep", () => {
      it("keeps so many prompts, the newest", async () => {
        await store(
          ...Array.from({ length: 30 }, (_, n) => ({ request: `r${n}`, at: NOW, user: n < 15 ? "ana" : "ben" })),
        );
        await prompts.sweep(0, 30);
        expect((await ids()).length).toBe(30);
        await prompts.sweep(0, 10);
        expect(await ids()).toEqual(Array.from({ length: 10 }, (_, n) => `r${29 - n}`));
      });

      it("removes prompts from before a time", async () => {
        await store({ request: "old", at: NOW - 32 * DAY }, { request: "new", at: NOW - 31 * DAY });
        await prompts.sweep(NOW - 31 * DAY, 10);
        expect(await ids()).toEqual(["new"]);
      });
    });

    describe("first-token times", () => {
      const timeOf = (n: number) => ({ uncachedTokens: n, cachedTokens: 10 * n, ms: n + 0.5 });
      const keep = (engine: string, { scopeId, turnId }: SaidRow, n: number) =>
        prompts.keepFirstTokenTime(engine, scopeId, turnId as TurnId, timeOf(n));

      it("are numbered by engine, and read in order", async () => {
        expect(await prompts.countFirstTokenTimes("vllm")).toBe(0);
        const rows = await store(...[1, 2, 3, 4, 5].map((n) => ({ request: `r${n}`, at: NOW })));
        for (const [at, row] of rows.entries()) await keep(at === 2 ? "openai" : "vllm", row, at);
        expect(await prompts.countFirstTokenTimes("vllm")).toBe(4);
        expect(await prompts.countFirstTokenTimes("openai")).toBe(1);
        expect(await prompts.firstTokenTimes("vllm", 4, 10)).toEqual([0, 1, 3, 4].map(timeOf));
        expect(await prompts.firstTokenTimes("vllm", 3, 2)).toEqual([1, 3].map(timeOf));
      });

      it("stay as they are where one is stored again", async () => {
        const [first, second] = (await store({ request: "r1", at: NOW }, { request: "r2", at: NOW })) as [
          SaidRow,
          SaidRow,
        ];
        await keep("vllm", first, 1);
        await keep("vllm", second, 2);
        await keep("vllm", first, 3);
        expect(await prompts.firstTokenTimes("vllm", await prompts.countFirstTokenTimes("vllm"), 10)).toEqual([
          timeOf(1),
          timeOf(2),
        ]);
      });
    });
  });
}
