import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Database, UserTransaction } from "../../../src/store/database.js";
import { openPostgres } from "../../../src/store/postgres/open.js";
import { emptyDatabases, newDatabase, testServer } from "../../postgres/test-server.js";
import { ana, bob, commitsOf, commitTo, counted, newUser, userNamed, VERSION } from "./user-rows.js";

const server = await testServer();

describe.skipIf(server.url === null)("a user who is held in PostgreSQL", () => {
  let one: Database;
  let two: Database;
  let url: string;
  const emptyDatabase = emptyDatabases(server.url ?? "");
  beforeEach(async () => {
    url = await emptyDatabase();
    [one, two] = await Promise.all([openPostgres(url), openPostgres(url)]);
    await one.write([newUser(ana), newUser(bob)]);
  });
  afterEach(async () => {
    await Promise.all([one.close(), two.close()]);
  });

  it("is waited for by the next holder, who reads what was committed", async () => {
    const steps: string[] = [];
    let second: Promise<void> | undefined;
    await one.hold(ana, async (transaction) => {
      await transaction.read("select 1", []);
      second = two.hold(ana, async (next) => {
        const version = await commitsOf(next, ana);
        steps.push(`read ${version}`);
      });
      await setTimeout(100);
      steps.push("committed");
      await transaction.commit([counted(ana)]);
    });
    await second;
    expect(steps).toEqual(["committed", "read 1"]);
  });

  it("loses no commit of many instances, and keeps nobody else waiting", async () => {
    const add = (database: Database) =>
      database.hold(ana, async (transaction) => {
        const version = await commitsOf(transaction, ana);
        await setTimeout(1);
        const text = "update scopes set version = $1 where tenant = $2 and user_id = $3";
        await transaction.commit([{ text, values: [(version ?? 0) + 1, ana.tenant, ana.userId] }]);
      });
    await one.hold(bob, async () => {
      await Promise.all(Array.from({ length: 40 }, (_, nth) => add(nth % 2 === 0 ? one : two)));
    });
    expect(await commitsOf(one, ana)).toBe(40);
  });

  it("is read by others as it was, until the commit", async () => {
    await one.hold(ana, async (transaction) => {
      expect(await commitsOf(transaction, ana)).toBe(0);
      expect(await commitsOf(two, ana)).toBe(0);
      await transaction.commit([counted(ana), counted(ana)]);
      expect(await commitsOf(two, ana)).toBe(2);
    });
  });

  it("is unchanged without a commit, and free at once", async () => {
    expect(await one.hold(ana, async () => "unused")).toBe("unused");
    const failure = one.hold(ana, async (transaction) => {
      await transaction.read("select 1", []);
      throw new RangeError("of the work");
    });
    await expect(failure).rejects.toThrow(RangeError);
    await commitTo(two, ana);
    expect(await commitsOf(one, ana)).toBe(1);
  });

  it("is unchanged where one of the statements fails", async () => {
    const broken = { text: "insert into changes (scope_id, version, changes) values (1, 1, null)", values: [] };
    const failure = one.hold(ana, (transaction) => transaction.commit([counted(ana), broken, counted(ana)]));
    await expect(failure).rejects.toThrow("null value");
    expect(await commitsOf(two, ana)).toBe(0);
    await commitTo(one, ana);
  });

  it("says what failed first, whatever is awaited", async () => {
    const failure = one.hold(ana, async (transaction) => {
      void transaction.read("select 1 / 0", []);
      await transaction.read("select 1", []);
    });
    await expect(failure).rejects.toThrow("division by zero");
  });

  it("may be one that is not stored: there is nothing to read, and nothing is committed", async () => {
    const eve = userNamed("eve");
    await one.hold(eve, async (transaction) => {
      expect(await transaction.read(VERSION, [eve.tenant, eve.userId])).toEqual([]);
      await expect(transaction.commit([newUser(eve)])).rejects.toThrow("without rows");
    });
    expect(await commitsOf(two, eve)).toBeNull();
  });

  it("is held for one commit, and not longer", async () => {
    let kept: UserTransaction | undefined;
    await one.hold(ana, async (transaction) => {
      kept = transaction;
      await transaction.commit([counted(ana)]);
      await expect(transaction.commit([counted(ana)])).rejects.toThrow("has ended");
    });
    await one.hold(bob, async (transaction) => {
      kept = transaction;
    });
    await expect(kept?.commit([counted(bob)])).rejects.toThrow("has ended");
    expect(() => kept?.read("select 1", [])).toThrow("has ended");
    expect([await commitsOf(one, ana), await commitsOf(one, bob)]).toEqual([1, 0]);
  });

  it("is waited for no longer than two seconds", async () => {
    await one.hold(ana, async (transaction) => {
      await transaction.read("select 1", []);
      await expect(commitTo(two, ana)).rejects.toMatchObject({ name: "StoreUnavailableError", fault: "busy" });
      await commitTo(two, bob);
    });
  });

  it("leaves connections for reading, however many are held", async () => {
    const users = Array.from({ length: 16 }, (_, nth) => userNamed(`user-${nth}`));
    await one.write(users.map(newUser));
    let held = 0;
    await Promise.all(
      users.map((user) =>
        one.hold(user, async (transaction) => {
          held++;
          await vi.waitUntil(() => held === users.length);
          expect(await commitsOf(one, user)).toBe(0);
          await transaction.commit([counted(user)]);
        }),
      ),
    );
  });

  it("is stored before its database has closed", async () => {
    const commits = [one.write([counted(ana)]), commitTo(one, ana), commitTo(one, bob)];
    const closed = one;
    one = await openPostgres(url);
    await closed.close();
    expect([await commitsOf(two, ana), await commitsOf(two, bob)]).toEqual([2, 1]);
    await Promise.all(commits);
  });
});

describe.skipIf(server.url === null)("values of PostgreSQL", () => {
  it("are numbers, texts and null, as in SQLite", async () => {
    const database = await openPostgres(await newDatabase(server.url ?? ""));
    const [row] = await database.read(
      `select 9007199254740991::bigint as big, sum(n) as sum, avg(n) as avg, count(*) as count, 1.5::float8 as float,
        true as yes, null as nothing, '{"a":1}'::json as json from (values (1::bigint), (2)) as t (n)`,
      [],
    );
    const numbers = { big: 9007199254740991, sum: 3, avg: 1.5, count: 2, float: 1.5, yes: 1 };
    expect(row).toEqual({ ...numbers, nothing: null, json: '{"a":1}' });
    const among = `select n from (values ('a'), ('b"'), ('c')) as t (n) where n ${database.isAmong("$1")}`;
    expect(await database.read(among, ['["b\\"","c","d"]'])).toEqual([{ n: 'b"' }, { n: "c" }]);
    expect(await database.erase(["a text"])).toBe("erased");
    await database.close();
  });
});
