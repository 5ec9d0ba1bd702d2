import { describe } from "vitest";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { describeStore } from "../api/store.suite.js";

const server = await testServer();

describe.skipIf(server.url === null)("on a real server", () => {
  describeStore("a journal in PostgreSQL", async () => {
    const { journal } = await openPostgres(await newDatabase(server.url ?? ""));
    return new JournalStore(journal);
  });
});
