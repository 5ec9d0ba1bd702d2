import { describe } from "vitest";
import { openPostgres } from "../../../src/store/postgres/open.js";
import { emptyDatabases, testServer } from "../../postgres/test-server.js";
import { describePrompts } from "../prompts.suite.js";

const server = await testServer();

describe.skipIf(server.url === null)("on a real server", () => {
  const emptyDatabase = emptyDatabases(server.url ?? "");
  describePrompts("prompts in PostgreSQL", async () => openPostgres(await emptyDatabase()));
});
