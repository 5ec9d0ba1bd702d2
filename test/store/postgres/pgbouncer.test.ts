import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../../src/store/database.js";
import { openPostgres } from "../../../src/store/postgres/open.js";
import { startCuttingProxy } from "../../postgres/cutting-proxy.js";
import { missingPgBouncer, type PgBouncer, startPgBouncer } from "../../postgres/pgbouncer.js";
import { emptyDatabases, newDatabase, testServer } from "../../postgres/test-server.js";
import { ana, commitsOf, commitTo, newUser, userNamed } from "./user-rows.js";

const server = await testServer();
const missing = server.url === null ? server.missing : missingPgBouncer;

describe.skipIf(missing !== null)(`behind PgBouncer${missing === null ? "" : ` (skipped: ${missing})`}`, () => {
  let pooler: PgBouncer;
  let direct: string;
  let url: string;
  let one: Database;
  let two: Database;
  beforeAll(async () => {
    pooler = await startPgBouncer(server.url ?? "");
  });
  afterAll(() => pooler.stop());
  const emptyDatabase = emptyDatabases(server.url ?? "");
  beforeEach(async () => {
    direct = await emptyDatabase();
    url = pooler.url.replace(/\/postgres$/, new URL(direct).pathname);
    [one, two] = await Promise.all([openPostgres(url), openPostgres(url)]);
    await one.write([newUser(ana)]);
  });
  afterEach(async () => {
    await Promise.all([one.close(), two.close()]);
  });

  it("two instances lose no commit of each other", async () => {
    const users = [ana, ...["b", "c", "d"].map(userNamed)];
    await two.write(users.map(newUser));
    const add = async (nth: number) => {
      const [database, user] = [nth % 2 === 0 ? one : two, users[nth % 4] ?? ana];
      await database.hold(user, async (transaction) => {
        const version = (await commitsOf(transaction, user)) ?? 0;
        const text = "update scopes set version = $1 where tenant = $2 and user_id = $3";
        await transaction.commit([{ text, values: [version + 1, user.tenant, user.userId] }]);
      });
      await commitsOf(database, user);
    };
    await Promise.all(Array.from({ length: 200 }, (_, nth) => add(nth)));
    expect(await Promise.all(users.map((user) => commitsOf(one, user)))).toEqual([50, 50, 50, 50]);
  });

  it("nothing stays in the sessions that others get", async () => {
    await Promise.all(Array.from({ length: 10 }, () => commitTo(one, ana)));
    const client = new pg.Client(direct);
    await client.connect();
    const { rows: locks } = await client.query(
      "select 1 from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())",
    );
    await client.end();
    expect(locks).toEqual([]);
    const others = Array.from({ length: 6 }, () => new pg.Client(url));
    const settings = await Promise.all(
      others.map(async (other) => {
        await other.connect();
        await other.query("begin");
        const { rows } = await other.query(
          "select current_setting('enable_seqscan') as scan, current_setting('lock_timeout') as wait, current_setting('search_path') as path",
        );
        const prepared = await other.query("select name from pg_prepared_statements");
        return [rows[0], prepared.rows];
      }),
    );
    await Promise.all(others.map((other) => other.end()));
    for (const each of settings) expect(each).toEqual([{ scan: "on", wait: "0", path: '"$user", public' }, []]);
  });

  it("ten instances create the schema together", async () => {
    const fresh = pooler.url.replace(/\/postgres$/, new URL(await newDatabase(server.url ?? "")).pathname);
    const all = await Promise.all(Array.from({ length: 10 }, () => openPostgres(fresh)));
    expect(await all[0]?.read("select 1 from memprefix.migrations", [])).toHaveLength(1);
    await Promise.all(all.map((database) => database.close()));
  });

  it.each([
    ["before its client hears of it", 1],
    ["before the server hears of it", 0],
  ] as const)("a commit that is lost %s is stored or rejected", async (where, stored) => {
    const proxy = await startCuttingProxy(url);
    const cut = await openPostgres(proxy.url);
    proxy.cut(where);
    const outcome = await commitTo(cut, ana).catch((error: unknown) => error);
    expect(outcome).toEqual(stored === 1 ? undefined : expect.objectContaining({ fault: "unreachable" }));
    expect(await commitsOf(one, ana)).toBe(stored);
    await cut.close();
    await proxy.stop();
  });
});
