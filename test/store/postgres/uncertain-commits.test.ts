import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../../src/store/database.js";
import { openPostgres } from "../../../src/store/postgres/open.js";
import { type CuttingProxy, startCuttingProxy } from "../../postgres/cutting-proxy.js";
import { emptyDatabases, testServer } from "../../postgres/test-server.js";
import { ana, commitsOf, commitTo, counted, newUser } from "./user-rows.js";

const server = await testServer();

describe.skipIf(server.url === null)("a commit whose connection is lost at its end", () => {
  let proxy: CuttingProxy;
  /** Behind the proxy. */
  let cut: Database;
  let other: Database;
  const emptyDatabase = emptyDatabases(server.url ?? "");
  beforeEach(async () => {
    const url = await emptyDatabase();
    proxy = await startCuttingProxy(url);
    cut = await openPostgres(proxy.url);
    other = await openPostgres(url);
    await other.write([newUser(ana)]);
  });
  afterEach(async () => {
    await Promise.all([cut.close(), other.close()]);
    await proxy.stop();
  });

  /** A commit of an agent's scope leaves the user's own row as it was. */
  const ofAgent = {
    text: "insert into scopes (tenant, user_id, agent_id, created_at) values ($1, $2, 'coach', 1)",
    values: [ana.tenant, ana.userId],
  };
  const deletion = {
    text: "delete from scopes where tenant = $1 and user_id = $2",
    values: [ana.tenant, ana.userId],
  };
  const change = {
    text: `insert into changes (scope_id, version, changes) select id, 1, '{}' from scopes
      where tenant = $1 and user_id = $2`,
    values: [ana.tenant, ana.userId],
  };

  it.each([
    ["a version", counted(ana)],
    ["an agent's scope", ofAgent],
    ["a change", change],
    ["a deleted user", deletion],
  ])("resolves where the server has stored it: %s", async (_, statement) => {
    proxy.cut("before its client hears of it");
    await cut.hold(ana, (transaction) => transaction.commit([statement]));
    expect(proxy.count()).toBe(1);
  });

  it("rejects where the server has not heard of it, and nothing is stored", async () => {
    proxy.cut("before the server hears of it");
    await expect(commitTo(cut, ana)).rejects.toMatchObject({ name: "StoreUnavailableError", fault: "unreachable" });
    expect(await commitsOf(other, ana)).toBe(0);
    await commitTo(cut, ana);
    expect(await commitsOf(other, ana)).toBe(1);
  });

  it("rejects where the transaction's id is another one's, as after a crash", async () => {
    proxy.cut("before its client hears of it");
    const failure = cut.hold(ana, (transaction) => transaction.commit([]));
    await expect(failure).rejects.toMatchObject({ fault: "unreachable" });
  });

  it("rejects after some seconds where the server says nothing", async () => {
    const commit = cut.hold(ana, async (transaction) => {
      await transaction.read("select 1", []);
      proxy.cut("before its client hears of it", Number.POSITIVE_INFINITY);
      await transaction.commit([counted(ana)]);
    });
    const verdict = expect(commit).rejects.toMatchObject({ fault: "unreachable" });
    await setTimeout(100);
    await proxy.stop();
    await verdict;
  });

  it.each(["before the server hears of it", "before its client hears of it"] as const)(
    "is run again where it may be: a write that is lost %s",
    async (where) => {
      proxy.cut(where, 3);
      const text = "update scopes set version = 7 where tenant = $1 and user_id = $2";
      const statement = { text, values: [ana.tenant, ana.userId] };
      await cut.write([statement, statement]);
      expect(await commitsOf(other, ana)).toBe(7);
      expect(proxy.count()).toBe(3);
    },
  );
});
