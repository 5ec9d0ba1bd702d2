import { describe } from "vitest";
import { openPostgres } from "../../../src/store/postgres/open.js";
import { emptyDatabases, testServer } from "../../postgres/test-server.js";
import { describeRandomUse } from "../random-use.suite.js";
import { describeStore } from "../store.suite.js";

const server = await testServer();

describe.skipIf(server.url === null)("on a real server", () => {
  const emptyDatabase = emptyDatabases(server.url ?? "");
  const open = async () => {
    const url = await emptyDatabase();
    return { database: await openPostgres(url), beside: () => openPostgres(url) };
  };
  describeStore("PostgreSQL", open);
  // What one store does here, it does in SQLite, too.
  describeRandomUse(open, [2]);
});
