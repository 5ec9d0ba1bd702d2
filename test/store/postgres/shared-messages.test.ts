import pg from "pg";
import { describe } from "vitest";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { describeSharedMessages } from "../api/shared-messages.suite.js";

const server = await testServer();

describe.skipIf(server.url === null)("on a real server", () => {
  describeSharedMessages("a journal in PostgreSQL", async () => {
    const url = await newDatabase(server.url ?? "");
    const [first, second] = [await openPostgres(url), await openPostgres(url)];
    const [one, two] = [new JournalStore(first.journal), new JournalStore(second.journal)];
    const client = new pg.Client(url);
    await client.connect();
    const column = async (sql: string) => (await client.query<{ text: string }>(sql)).rows.map(({ text }) => text);
    return {
      one,
      two,
      texts: async () => ({
        said: await column("select said as text from memprefix.journal where said is not null"),
        shared: await column("select messages as text from memprefix.instructions"),
      }),
      end: async () => {
        await client.end();
        await one.close();
        await two.close();
      },
    };
  });
});
