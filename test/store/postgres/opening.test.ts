import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../../src/store/database.js";
import { DatabaseOpenError } from "../../../src/store/open-error.js";
import { openPostgres } from "../../../src/store/postgres/open.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { ana, commitsOf, newUser } from "./user-rows.js";

const server = await testServer();

describe.skipIf(server.url === null)("opening a database in PostgreSQL", () => {
  let url: string;
  let opened: Database;
  beforeEach(async () => {
    url = await newDatabase(server.url ?? "");
    opened = await openPostgres(url);
  });
  afterEach(() => opened.close());

  async function run(text: string): Promise<object[]> {
    const client = new pg.Client(url);
    await client.connect();
    try {
      return (await client.query<object>(text)).rows;
    } finally {
      await client.end();
    }
  }

  const failureAt = async (where: string) => {
    const failure = await openPostgres(where).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DatabaseOpenError);
    return String(failure);
  };

  it("finds what another instance stored", async () => {
    await opened.write([newUser(ana)]);
    const again = await openPostgres(url);
    expect(await commitsOf(again, ana)).toBe(0);
    await again.close();
  });

  it("says why it fails, and quotes neither user nor password", async () => {
    const wrong = await failureAt(url.replace("memprefix:memprefix@", "hunter1:hunter2@"));
    expect(wrong).toMatch(
      /^DatabaseOpenError: cannot open the database postgres:\/\/127.0.0.1:\d+\/test_\w+: its server/,
    );
    expect(wrong).toContain("password authentication failed for user)");
    expect(wrong).not.toContain("hunter");
    expect(await failureAt(url.replace(/:\d+\//, ":1/"))).toContain("cannot be reached");
    expect(await failureAt(`${url}_none`)).toContain("does not exist");
    expect(await failureAt("postgres://[")).toContain("cannot open the database postgres");
  });

  it("refuses a newer version's schema", async () => {
    await run("insert into memprefix.migrations (hash, created_at) values ('later', 9999999999999)");
    expect(await failureAt(url)).toContain("another version");
  });

  it("refuses a development version's schema, and changes nothing", async () => {
    await run("update memprefix.migrations set created_at = 1790000000000");
    const stored = async () => [
      await run("select table_name from information_schema.tables where table_schema = 'memprefix'"),
      await run("select * from memprefix.migrations"),
    ];
    const before = await stored();
    expect(await failureAt(url)).toMatch(
      /: another version of memprefix wrote it; use that version, or an empty database, or drop its schema memprefix$/,
    );
    expect(await stored()).toEqual(before);
  });

  it("refuses what cannot be written", async () => {
    await run(`alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`);
    expect(await failureAt(url)).toContain("it cannot be written");
  });

  it("creates the schema once, where ten instances begin together", async () => {
    const fresh = await newDatabase(server.url ?? "");
    const all = await Promise.all(Array.from({ length: 10 }, () => openPostgres(fresh)));
    expect(await all[0]?.read("select 1 from memprefix.migrations", [])).toHaveLength(1);
    await Promise.all(all.map((database) => database.close()));
  });
});
