import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Memstem } from "../../../src/service/library/memstem.js";
import type { Store } from "../../../src/store/api/store.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { journalIn } from "../../../src/store/sqlite/open-journal.js";
import { openJournalDatabase } from "../../../src/store/upgrade/upgrade-to-journal.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { composeWith, openService } from "../compose/service-fixture.js";

const server = await testServer();

/** What a backup of that moment does not have, or a standby had not received. */
const LOSE_ALL_BUT_THE_FIRST = "delete from journal where n > 1";

describe.each([
  { name: "a file", skip: false },
  { name: "PostgreSQL", skip: server.url === null },
])("a database in $name that goes back to an earlier state while an instance runs", ({ name, skip }) => {
  let directory = "";
  let openStore: () => Promise<Store>;
  let lose: () => Promise<void>;
  const services: Memstem[] = [];
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "memstem-restored-"));
    if (name === "PostgreSQL" && server.url !== null) {
      const url = await newDatabase(server.url);
      openStore = async () => new JournalStore((await openPostgres(url)).journal);
      lose = async () => {
        const client = new pg.Client(url);
        await client.connect();
        await client.query(`set search_path to memstem; ${LOSE_ALL_BUT_THE_FIRST}`);
        await client.end();
      };
      return;
    }
    const file = join(directory, "memstem.db");
    openStore = async () => new JournalStore(journalIn(openJournalDatabase(file)));
    lose = async () => {
      const sqlite = new Database(file);
      sqlite.exec(LOSE_ALL_BUT_THE_FIRST);
      sqlite.close();
    };
  });
  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.close()));
    await rm(directory, { recursive: true });
  });

  async function started(): Promise<Memstem> {
    const service = openService({ store: await openStore() });
    services.push(service);
    return service;
  }
  const tell = (service: Memstem, name: string, requestId = `r-${name}`) =>
    composeWith(service, {
      userId: "ana",
      requestId,
      query: "?",
      memories: [{ id: `m-${name}`, memory: `Fact ${name}` }],
    });
  const textOf = async (telling: ReturnType<typeof tell>) => JSON.stringify((await telling).messages);

  it.skipIf(skip)("is read again by an instance that has as many commits in memory as there are since", async () => {
    const one = await started();
    for (const fact of ["first", "lost", "gone", "away"]) await tell(one, fact);
    await lose();
    const other = await started();
    for (const fact of ["new", "next", "last"]) await tell(other, fact);
    expect(await textOf(tell(one, "next", "again"))).toContain("3 Fact next");
    expect(await textOf(tell(one, "lost", "lost-again"))).toContain("5 Fact lost");
    expect(await textOf(tell(other, "lost", "lost-there"))).toContain("5 Fact lost");
  });

  it.skipIf(skip)("is read again before something of it is sent without a commit", async () => {
    const one = await started();
    for (const fact of ["first", "lost"]) await tell(one, fact);
    await lose();
    const other = await started();
    const answered = await textOf(tell(other, "new"));
    expect(answered).toContain("2 Fact new");
    expect(await textOf(tell(one, "new"))).toBe(answered);
  });
});
