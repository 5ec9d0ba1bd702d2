import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { StaleScopeError, StoreUnavailableError } from "../../../src/store/api/store.js";
import { type OpenPostgres, openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { createDatabase, type EmbeddedServer, startServer, UNSAFE_BUT_FAST } from "../../postgres/embedded-server.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { composed, scopeNamed, unitOf } from "../journal/journal-database.suite.js";

const server = await testServer();

const ana = scopeNamed("ana");

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

describe.skipIf(server.url === null)("faults of a server", () => {
  let url: string;
  let opened: OpenPostgres;
  beforeEach(async () => {
    url = await newDatabase(server.url ?? "");
    opened = await openPostgres(url);
  });
  afterEach(() => opened.journal.close());

  const terminate = () =>
    withClient(server.url ?? "", (client) =>
      client.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [
        new URL(url).pathname.slice(1),
      ]),
    );

  it("that end its connections are not noticed by reads, nor by commits", async () => {
    let { version } = await opened.journal.write(unitOf(ana, null, [composed(1)]));
    for (let turn = 2; turn < 6; turn++) {
      await terminate();
      expect(await opened.journal.versionOf(ana)).toEqual(version);
      await terminate();
      ({ version } = await opened.journal.write(unitOf(ana, version, [composed(turn)])));
    }
    await terminate();
    expect(await opened.keys.any()).toBe(false);
    expect((await opened.journal.load(ana)).version).toMatchObject({ commits: 5 });
  });

  it("that make it read-only reject commits as such, until it is not", async () => {
    const name = new URL(url).pathname.slice(1);
    const { version } = await opened.journal.write(unitOf(ana, null, [composed(1)]));
    await withClient(server.url ?? "", (client) =>
      client.query(`alter database ${name} set default_transaction_read_only = on`),
    );
    await terminate();
    const failure = await opened.journal.write(unitOf(ana, version, [composed(2)])).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: "StoreUnavailableError", fault: "read-only" });
    expect(await opened.journal.versionOf(ana)).toEqual(version);
    await expect(openPostgres(url)).rejects.toThrow("cannot be written");
    await withClient(server.url ?? "", (client) =>
      client.query(`alter database ${name} set default_transaction_read_only = off`),
    );
    // Without ending its connections: they are not used again after the first fault.
    expect((await opened.journal.write(unitOf(ana, version, [composed(2)]))).version?.commits).toBe(2);
  });

  it("that hold a lock fail the commits that wait for it, as busy, and no other", async () => {
    const { version } = await opened.journal.write(unitOf(ana, null, [composed(1)]));
    await withClient(url, async (client) => {
      await client.query("begin");
      await client.query("select * from memprefix.journal where scope_id = $1 for update", [version?.scopeId]);
      const [key] = await opened.journal.list(version?.scopeId ?? 0, { most: 1 });
      const outcomes = await Promise.allSettled([
        opened.journal.write({
          ...unitOf(ana, version, []),
          changes: [{ kind: "rewrite", seq: key?.seq ?? 0, to: { said: null } }],
        }),
        opened.journal.write(unitOf(scopeNamed("bob"), null, [composed(1)])),
      ]);
      expect(outcomes[0]).toMatchObject({ status: "rejected", reason: { fault: "busy" } });
      expect(outcomes[1]).toMatchObject({ status: "fulfilled" });
    });
  });

  it("tell an opener why, and quote no password", async () => {
    const wrong = url.replace("memprefix:memprefix@", "memprefix:hunter2@");
    const failure = await openPostgres(wrong).catch((error: unknown) => error as Error);
    expect(String(failure)).toMatch(/cannot be reached|password/);
    expect(String(failure)).not.toContain("hunter2");
    const gone = url.replace(/:\d+\//, ":1/");
    await expect(openPostgres(gone)).rejects.toThrow(/cannot be reached/);
    await expect(openPostgres(`${url}_none`)).rejects.toThrow(/does not exist/);
  });

  it("by a newer version's schema refuse to open", async () => {
    await withClient(url, (client) =>
      client.query("insert into memprefix.migrations (hash, created_at) values ('later', 9999999999999)"),
    );
    await expect(openPostgres(url)).rejects.toThrow("newer version");
  });

  it("by a development version's schema refuse to open, and change nothing", async () => {
    const stored = () =>
      withClient(url, async (client) => {
        await client.query("update memprefix.migrations set created_at = 1790000000000");
        const tables = await client.query(
          "select table_name from information_schema.tables where table_schema = 'memprefix'",
        );
        const { rows } = await client.query("select * from memprefix.migrations");
        return [tables.rows, rows];
      });
    const before = await stored();
    await expect(openPostgres(url)).rejects.toThrow(
      /: a development version from before 0\.1\.0 wrote it, which this version does not read; use an empty database, or drop its schema memprefix$/,
    );
    expect(await stored()).toEqual(before);
  });

  it("are no fault where ten instances create the schema together", async () => {
    const fresh = await newDatabase(server.url ?? "");
    const all = await Promise.all(Array.from({ length: 10 }, () => openPostgres(fresh)));
    expect(new Set(all.map(({ journal }) => journal.sealKey.toString("hex"))).size).toBe(1);
    await Promise.all(all.map(({ journal }) => journal.close()));
  });
});

describe.skipIf(server.url === null)("a server of few connections that is killed", () => {
  let own: EmbeddedServer;
  let url: string;
  beforeAll(async () => {
    own = await startServer([...UNSAFE_BUT_FAST, "-c", "max_connections=30"]);
    url = await createDatabase(own.url, "killed");
  });
  afterAll(() => own.stop());

  it("rejects what it has no connection for as unreachable, and takes it later", async () => {
    const opened = await openPostgres(url);
    const others = Array.from({ length: 40 }, () => new pg.Client(url));
    for (const client of others) client.on("error", () => {});
    const taken = await Promise.allSettled(others.map((client) => client.connect()));
    expect(taken.some(({ status }) => status === "rejected")).toBe(true);
    const failure = await opened.journal.write(unitOf(ana, null, [composed(1)])).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StoreUnavailableError);
    expect(failure).toMatchObject({ fault: "unreachable" });
    await expect(opened.journal.ping()).rejects.toMatchObject({ fault: "unreachable" });
    await Promise.all(others.map((client, at) => (taken[at]?.status === "fulfilled" ? client.end() : undefined)));
    expect((await opened.journal.write(unitOf(ana, null, [composed(1)]))).version?.commits).toBe(1);
    await opened.journal.ping();
    await opened.journal.close();
  });

  it("loses nothing that was answered, and doubles nothing, under three writing instances", async () => {
    const opened = await Promise.all([openPostgres(url), openPostgres(url), openPostgres(url)]);
    const scopes = ["a", "b", "c", "d"].map((agent) => scopeNamed("kim", agent));
    const won: string[] = [];
    let failed = 0;
    let isOver = false;
    const write = async ({ journal }: OpenPostgres, name: string) => {
      for (let commit = 0; !isOver; commit++) {
        const scope = scopes[commit % scopes.length] ?? ana;
        const requestId = `${name}-${commit}`;
        try {
          const { version } = await journal.load(scope);
          const record = composed((version?.commits ?? 0) + 1, { requestId });
          const written = await journal.write(unitOf(scope, version, [record]));
          won.push(`${requestId}:${written.version?.commits}`);
        } catch (error) {
          if (error instanceof StaleScopeError) continue;
          if (!(error instanceof StoreUnavailableError)) throw error;
          failed++;
          await setTimeout(20);
        }
      }
    };
    const writing = opened.flatMap((one, at) => [write(one, `${at}x`), write(one, `${at}y`)]);
    for (let kill = 0; kill < 3; kill++) {
      await setTimeout(400);
      const before = won.length;
      expect(before).toBeGreaterThan(0);
      await own.kill();
      await own.restart();
      while (won.length < before + 20) await setTimeout(20);
    }
    isOver = true;
    await Promise.all(writing);

    const journal = opened[0].journal;
    const stored: string[] = [];
    for (const { scopeId } of await journal.scopesOf("default", "kim" as UserId)) {
      const keys = await journal.list(scopeId, { most: 100_000 });
      expect(keys.map(({ n }) => n)).toEqual(keys.map((_, at) => at + 1));
      stored.push(...keys.map(({ requestId, n }) => `${requestId}:${n}`));
    }
    // Nothing that was answered is missing; and nothing is stored that was rejected, but for what never heard of its outcome.
    const answered = new Set(won);
    expect(won.filter((one) => !stored.includes(one))).toEqual([]);
    expect(new Set(stored.map((one) => one.split(":")[0])).size).toBe(stored.length);
    expect(stored.filter((one) => !answered.has(one)).length).toBeLessThanOrEqual(failed);
    await Promise.all(opened.map((one) => one.journal.close()));
  });
});
