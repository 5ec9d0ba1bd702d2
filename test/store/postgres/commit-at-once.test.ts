import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { StaleScopeError } from "../../../src/store/api/store.js";
import { type OpenPostgres, openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { composed, scopeNamed, unitOf } from "../journal/journal-database.suite.js";

const server = await testServer();

describe.skipIf(server.url === null)("a group that is committed at once", () => {
  let one: OpenPostgres;
  let client: pg.Client;
  beforeEach(async () => {
    const url = await newDatabase(server.url ?? "");
    one = await openPostgres(url);
    client = new pg.Client({ connectionString: url });
    await client.connect();
    // The first one has numbers reserved for those that follow.
    await one.journal.write(unitOf(ana, null, [composed(1)]));
    await expect.poll(lastNumber).toBeGreaterThan(60);
  });
  afterEach(async () => {
    await client.end();
    await one.journal.close();
  });

  const ana = scopeNamed("ana");
  const bob = scopeNamed("bob");
  const lastNumber = async () =>
    Number((await client.query("select last_value from memstem.scopes_scope_id_seq")).rows[0]?.last_value);
  const scopeRows = async () =>
    (await client.query("select scope_id::int as id, user_id from memstem.scopes order by user_id")).rows;

  it("begins scopes by numbers that were reserved, and stores all or nothing of a unit", async () => {
    const { version: other } = await one.journal.write(unitOf(bob, null, [composed(1)]));
    const last = await lastNumber();
    const users = Array.from({ length: 5 }, (_, at) => scopeNamed(`user-${at}`));
    const version = await one.journal.versionOf(ana);
    const [again, stale, ...created] = await Promise.allSettled([
      one.journal.write(unitOf(ana, version, [composed(2)])),
      one.journal.write(unitOf(bob, other && { ...other, commits: 2 }, [composed(2)])),
      ...users.map((user) => one.journal.write(unitOf(user, null, [composed(1)]))),
    ]);
    expect([again.status, stale.status]).toEqual(["fulfilled", "rejected"]);
    for (const [at, user] of users.entries())
      expect(created[at]).toEqual({ status: "fulfilled", value: { version: await one.journal.versionOf(user) } });
    expect(await lastNumber()).toBe(last);
    expect(new Set((await scopeRows()).map(({ id }) => id)).size).toBe(7);
  });

  it("stores all of a unit that has more than one call takes", async () => {
    const version = await one.journal.versionOf(ana);
    const turns = Array.from({ length: 200 }, (_, at) => at + 2);
    await one.journal.write(
      unitOf(
        ana,
        version,
        turns.map((turn) => composed(turn)),
      ),
    );
    const keys = await one.journal.list(version?.scopeId ?? 0, { most: 1_000 });
    expect(keys.map(({ requestId }) => requestId)).toEqual([1, ...turns].map((turn) => `r${turn}`));
  });

  it("begins no scope of a user who was deleted since", async () => {
    const { deletions } = await one.journal.load(bob);
    await one.journal.deleteUser("default", "bob" as UserId, { memoryId: null, isInSource: false });
    const write = one.journal.write({ ...unitOf(bob, null, [composed(1)]), deletions });
    await expect(write).rejects.toBeInstanceOf(StaleScopeError);
    expect(await one.journal.scopesOf("default", "bob" as UserId)).toEqual([]);
  });

  it("takes no number that is another scope's, where the database went back to an earlier state", async () => {
    await client.query(`insert into memstem.scopes (scope_id, tenant, user_id, agent_id, created_at) overriding system value
      select number, 'default', 'other-' || number, '', 0 from generate_series(1, 100) as number on conflict do nothing`);
    await client.query("select setval('memstem.scopes_scope_id_seq', 100)");
    const before = await scopeRows();
    await expect(one.journal.write(unitOf(bob, null, [composed(1)]))).rejects.toBeInstanceOf(StaleScopeError);
    await expect
      .poll(() =>
        one.journal.write(unitOf(bob, null, [composed(1)])).then(
          () => "stored",
          () => "stale",
        ),
      )
      .toBe("stored");
    expect((await scopeRows()).filter(({ user_id }) => user_id !== "bob")).toEqual(before);
    expect((await one.journal.versionOf(bob))?.scopeId).toBeGreaterThan(100);
  });
});
