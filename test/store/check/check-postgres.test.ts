import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkPostgres } from "../../../src/store/check/check-postgres.js";
import { DatabaseOpenError } from "../../../src/store/database/database-open-error.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { behind, exchanges } from "../api/shared-messages.suite.js";
import { scopeOf } from "../api/stored-compose.js";
import { DrivenStore } from "../journal/driven-store.js";

const TEA = { id: "tea", text: "Ana drinks green tea." };
const server = await testServer();

describe.skipIf(server.url === null)("a check of a journal in PostgreSQL", () => {
  let url = "";
  let client: pg.Client;
  let store: JournalStore;

  beforeAll(async () => {
    url = await newDatabase(server.url ?? "");
    store = new JournalStore((await openPostgres(url)).journal);
    const driven = new DrivenStore(store);
    for (const user of ["ana", "ben"])
      for (const requestId of ["r1", "r2"])
        await driven.compose(
          scopeOf(user),
          behind(exchanges(2), { requestId: `${user}-${requestId}`, memories: [TEA] }),
        );
    client = new pg.Client(url);
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await store.close();
  });

  /** What is found while the database is changed. */
  async function findingsWith(sql: string): Promise<string> {
    const tables = ["scopes", "journal", "snapshots", "instructions", "known_memories"];
    for (const table of tables) await client.query(`create table memprefix.kept_${table} as table memprefix.${table}`);
    try {
      expect((await client.query(sql)).rowCount).toBeGreaterThan(0);
      return (await checkPostgres(url)).findings.join("\n");
    } finally {
      for (const table of tables) {
        await client.query(`delete from memprefix.${table}`);
        await client.query(`insert into memprefix.${table} overriding system value table memprefix.kept_${table}`);
        await client.query(`drop table memprefix.kept_${table}`);
      }
    }
  }

  it("finds nothing where nothing is wrong, and counts scopes and requests", async () => {
    expect(await checkPostgres(url)).toEqual({ scopes: 2, requests: 4, findings: [] });
  });

  it.each([
    ["update memprefix.journal set said = replace(said, 'a', 'b') where n = 1", "its checksum is another's"],
    ["delete from memprefix.known_memories", "missing from those that walks find"],
    ["delete from memprefix.instructions where messages like '[%'", "has instructions that are missing"],
    ["delete from memprefix.instructions where messages like '{%'", "was given a message that is missing"],
    ["update memprefix.instructions set messages = replace(messages, 'on', 'ON')", "not what its digest says"],
    ["update memprefix.journal set kind = 99 where n = 2", "no record is of kind 99"],
  ])("%s is found, and named without text", async (sql, finding) => {
    const findings = await findingsWith(sql);
    expect(findings).toContain(`user "default" "ana": `);
    expect(findings).toContain(finding);
    expect(findings).not.toMatch(/Question|Answer|drinks/);
    expect((await checkPostgres(url)).findings).toEqual([]);
  });

  it("is of each user at one moment, while instances write", async () => {
    const driven = new DrivenStore(store);
    let isOver = false;
    const writing = (async () => {
      for (let at = 0; !isOver; at++)
        await driven.compose(scopeOf("cleo"), behind(exchanges(3), { requestId: `c-${at}` }));
    })();
    for (let check = 0; check < 10; check++) expect((await checkPostgres(url)).findings).toEqual([]);
    isOver = true;
    await writing;
  });

  it("refuses a database without tables of memprefix's, and one of another version, and changes neither", async () => {
    const empty = await newDatabase(server.url ?? "");
    await expect(checkPostgres(empty)).rejects.toThrow(/no tables of memprefix's/);
    await expect(checkPostgres("postgres://ana:hunter2@127.0.0.1:1/x")).rejects.toThrow(DatabaseOpenError);
    const newest = "select max(created_at) from memprefix.migrations";
    await client.query(`update memprefix.migrations set created_at = created_at + 1 where created_at = (${newest})`);
    await expect(checkPostgres(url)).rejects.toThrow(/which this version does not read/);
    await client.query(`update memprefix.migrations set created_at = created_at - 1 where created_at = (${newest})`);
    expect((await checkPostgres(url)).findings).toEqual([]);
  });
});
