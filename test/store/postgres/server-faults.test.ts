import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../../src/store/database.js";
import { openPostgres } from "../../../src/store/postgres/open.js";
import type { StoreUnavailableError } from "../../../src/store/store.js";
import { createDatabase, type EmbeddedServer, startServer } from "../../postgres/embedded-server.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { ana, commitsOf, commitTo, newUser } from "./user-rows.js";

const server = await testServer();

describe.skipIf(server.url === null)("faults of a server", () => {
  let name: string;
  let database: Database;
  beforeEach(async () => {
    const url = await newDatabase(server.url ?? "");
    name = new URL(url).pathname.slice(1);
    database = await openPostgres(url);
    await database.write([newUser(ana)]);
  });
  afterEach(() => database.close());

  async function onServer(text: string, values: readonly string[] = []): Promise<void> {
    const client = new pg.Client(server.url ?? "");
    await client.connect();
    await client.query(text, [...values]);
    await client.end();
  }

  const terminate = () => onServer("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);

  it("that end its connections are noticed by nobody who comes later", async () => {
    for (let commit = 0; commit < 5; commit++) {
      await terminate();
      expect(await commitsOf(database, ana)).toBe(commit);
      await terminate();
      await commitTo(database, ana);
    }
    await terminate();
    await database.read("select 1 as one", []);
  });

  it("that end a held user's connection reject what it does next", async () => {
    const failure = database.hold(ana, async (transaction) => {
      await transaction.read("select 1", []);
      await terminate();
      await commitsOf(transaction, ana);
    });
    await expect(failure).rejects.toMatchObject({ name: "StoreUnavailableError", fault: "unreachable" });
    await commitTo(database, ana);
  });

  it("that make it read-only reject commits as such, until it is not", async () => {
    await onServer(`alter database ${name} set default_transaction_read_only = on`);
    await terminate();
    await expect(commitTo(database, ana)).rejects.toMatchObject({ name: "StoreUnavailableError", fault: "read-only" });
    expect(await commitsOf(database, ana)).toBe(0);
    await onServer(`alter database ${name} set default_transaction_read_only = off`);
    // Without ending its connections: those from before the fault are not used again.
    await commitTo(database, ana);
    expect(await commitsOf(database, ana)).toBe(1);
  });
});

describe.skipIf(server.url === null)("a server that is killed", () => {
  let own: EmbeddedServer;
  let database: Database;
  beforeAll(async () => {
    own = await startServer();
    database = await openPostgres(await createDatabase(own.url, "killed"));
  });
  afterAll(async () => {
    await database.close();
    await own.stop();
  });

  it("answers as unreachable while it is away, and at once", async () => {
    await database.write([newUser(ana)]);
    await own.kill();
    // Processes of the killed server answer for a moment.
    const faultOf = (work: Promise<unknown>) =>
      work.then(
        () => null,
        (error: unknown) => (error as StoreUnavailableError).fault,
      );
    await expect.poll(() => faultOf(database.read("select 1 as one", []))).toBe("unreachable");
    const since = performance.now();
    await expect(commitTo(database, ana)).rejects.toMatchObject({ fault: "unreachable" });
    await expect(database.read("select 1 as one", [])).rejects.toMatchObject({ fault: "unreachable" });
    expect(performance.now() - since).toBeLessThan(1_000);
    // A write waits for it.
    const write = database.write([newUser(ana)]);
    await own.restart();
    await write;
    await commitTo(database, ana);
  });
});
