import pg from "pg";
import { describe } from "vitest";
import { openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { describeJournal } from "../journal/journal-database.suite.js";

const server = await testServer();

describe.skipIf(server.url === null)(
  `on a real server${server.url === null ? ` (skipped: ${server.missing})` : ""}`,
  () => {
    describeJournal("PostgreSQL", async () => {
      const url = await newDatabase(server.url ?? "");
      const [one, two] = await Promise.all([openPostgres(url), openPostgres(url)]);
      return {
        one: one.journal,
        two: two.journal,
        async damage(what) {
          const client = new pg.Client(url);
          await client.connect();
          await ("seq" in what
            ? client.query("update memprefix.journal set said = said || ' ' where seq = $1", [what.seq])
            : client.query("update memprefix.snapshots set data = data || ' ' where scope_id = $1", [what.snapshotOf]));
          await client.end();
        },
        async end() {
          await Promise.all([one.journal.close(), two.journal.close()]);
        },
      };
    });
  },
);
