import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../../src/store/database.js";
import { openPostgres } from "../../../src/store/postgres/open.js";
import { type CuttingProxy, startCuttingProxy } from "../../postgres/cutting-proxy.js";
import { emptyDatabases, testServer } from "../../postgres/test-server.js";
import { ana, commitsOf, commitTo, newUser } from "./user-rows.js";

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

  it("rejects where the server has stored it, and the next one goes on from there", async () => {
    proxy.cut("before its client hears of it");
    await expect(commitTo(cut, ana)).rejects.toMatchObject({ fault: "unreachable" });
    await commitTo(cut, ana);
    expect(await commitsOf(other, ana)).toBe(2);
  });

  it("rejects where the server has not heard of it, and nothing is stored", async () => {
    proxy.cut("before the server hears of it");
    await expect(commitTo(cut, ana)).rejects.toMatchObject({ name: "StoreUnavailableError", fault: "unreachable" });
    expect(await commitsOf(other, ana)).toBe(0);
    await commitTo(cut, ana);
    expect(await commitsOf(other, ana)).toBe(1);
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
