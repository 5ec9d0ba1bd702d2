import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { DEFAULT_USAGE_BOUNDS, type UsageLog } from "../../../src/store/api/usage-log.js";
import { openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { threadedUsageLog } from "../../../src/store/usage/threaded-usage-log.js";
import { type CuttingProxy, startCuttingProxy } from "../../postgres/cutting-proxy.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { composed, reported } from "./usage-entries.js";

const server = await testServer();
const NOW = Date.UTC(2026, 10, 20, 13, 37, 11);
const TENANTS = ["default", "acme"] as const;

describe.skipIf(server.url === null)("one usage log of several instances", () => {
  let url: string;
  let proxy: CuttingProxy | null = null;
  const logs: UsageLog[] = [];
  const open = (at = url, bounds = DEFAULT_USAGE_BOUNDS) => {
    const log = threadedUsageLog({ url: at }, bounds);
    logs.push(log);
    return log;
  };
  const rowsOf = async (log: UsageLog, tenant = "default") => (await log.prompts({ tenant }, null, 10_000)).rows;
  const count = async (table: string, where = "true") => {
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query<{ count: string }>(`select count(*) from memprefix.${table} where ${where}`);
    await client.end();
    return Number(rows[0]?.count);
  };
  beforeEach(async () => {
    url = await newDatabase(server.url ?? "");
    const { journal } = await openPostgres(url);
    await journal.close();
  });
  afterEach(async () => {
    await Promise.all(logs.splice(0).map((log) => log.close()));
    await proxy?.stop();
    proxy = null;
  });

  it("adds up what they record at once, and numbers a tenant's prompts from 1 without doubles", async () => {
    const instances = [open(), open(), open()];
    const record = (log: UsageLog, of: number, round: number) => {
      const prompts = Array.from({ length: 20 }, (_, n) => {
        const key = { tenant: TENANTS[n % 2] as string, user: `u${n % 5}`, request: `${of}-${round}-${n}` };
        const said = { ...key, at: NOW, conversation: "c", expected: 1_000, model: `m${n % 3}` };
        return [composed(said), reported({ ...key, cached: 400, ms: 50 })];
      });
      return log.record(prompts.flat(), NOW);
    };
    await Promise.all(
      instances.map(async (log, of) => {
        for (let round = 0; round < 10; round++) await record(log, of, round);
      }),
    );
    const reader = open();
    for (const tenant of TENANTS) {
      const rows = await rowsOf(reader, tenant);
      expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 300 }, (_, at) => 300 - at));
      expect(rows.every((row) => row.tenant === tenant)).toBe(true);
      const { total, groups } = await reader.summary({ tenant, window: "hour", now: NOW });
      expect(total.sums).toMatchObject({ prompts: 300, reportedCachedTokens: 120_000, missedTokens: 180_000 });
      expect(total.times).toEqual(new Map([[expect.any(Number), 300]]));
      expect(groups).toHaveLength(3);
    }
  });

  it("has nothing left of a deleted user, also where another instance records it late", async () => {
    const [one, two] = [open(), open()];
    const ana = (n: number) => composed({ request: `a${n}`, at: NOW - 10, conversation: `c${n % 3}` });
    await one.record(
      Array.from({ length: 5_300 }, (_, n) => ana(n)),
      NOW,
    );
    await two.record([composed({ request: "b", at: NOW, user: "ben" })], NOW);
    await one.record([composed({ request: "x", at: NOW, tenant: "acme" })], NOW);
    await one.deleteUser("default", "ana" as UserId, NOW);
    await two.record([ana(9_999), reported({ request: "a1", cached: 5 })], NOW + 1);
    expect((await rowsOf(two)).map(({ userId }) => userId)).toEqual(["ben"]);
    expect(await two.exportUser("acme", "ana" as UserId)).toHaveLength(1);
    expect(await count("usage_prompts", "user_id = 'ana' and tenant = 'default'")).toBe(0);
    expect(await count("usage_deleted_users", "digest like '%ana%'")).toBe(0);
    expect((await one.summary({ tenant: "default", window: "hour", now: NOW })).total.sums.prompts).toBe(1);
    // The bound counts what is kept: nothing of the others goes.
    await open(url, { ...DEFAULT_USAGE_BOUNDS, prompts: 2 }).record([], NOW);
    expect(await count("usage_prompts")).toBe(2);
  });

  it("takes names that the server cannot store, and texts of any kind", async () => {
    const log = open();
    const odd = "a'b\"c\\d{e},f\n\t⊕ null";
    await log.record(
      [
        composed({ request: odd, at: NOW, user: odd, agent: odd, conversation: odd, tenant: odd, model: `m\0\ud800` }),
        composed({ request: "long", at: NOW, model: "m".repeat(201) }),
      ],
      NOW,
    );
    const [row] = await rowsOf(log, odd);
    expect(row).toMatchObject({
      requestId: odd,
      userId: odd,
      agentId: odd,
      conversationId: odd,
      model: "m\ufffd\ufffd",
    });
    expect(
      (await log.prompts({ tenant: odd, userId: odd as UserId, agentId: odd as never }, null, 5)).rows,
    ).toHaveLength(1);
    expect((await rowsOf(log)).map(({ model }) => model)).toEqual(["other"]);
    await log.note({ tenant: odd, at: NOW, kind: "deploy", label: "a\0b", model: null });
    expect((await log.summary({ tenant: odd, window: "hour", now: NOW })).notes).toMatchObject([{ label: "a\ufffdb" }]);
  });

  it.each([
    // The log tries once more by itself: there it finds that the batch is recorded, or loses the connection again.
    { what: "before the server hears of it", times: 2 },
    { what: "before its client hears of it", times: 1 },
  ] as const)("records a batch once where the connection is lost $what", async ({ what, times }) => {
    proxy = await startCuttingProxy(url);
    const log = open(proxy.url);
    await log.record([composed({ request: "0", at: NOW })], NOW);
    const batch = [composed({ request: "1", at: NOW }), reported({ request: "1", cached: 100 })];
    proxy.cut(what, times);
    const outcome = await log.record(batch, NOW).catch((error: unknown) => error);
    expect(proxy.count()).toBe(times);
    if (times === 2) expect(outcome).toMatchObject({ name: "StoreUnavailableError", fault: "unreachable" });
    else expect(outcome).toBeUndefined();
    await log.record(batch, NOW);
    const { total } = await log.summary({ tenant: "default", window: "hour", now: NOW });
    expect(total.sums).toMatchObject({ prompts: 2, reportedPrompts: 1, reportedCachedTokens: 100 });
    expect((await rowsOf(log)).map(({ number }) => number)).toEqual([2, 1]);
  });
});
