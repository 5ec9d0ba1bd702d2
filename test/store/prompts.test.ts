import { describe } from "vitest";
import { openPostgres } from "../../src/store/postgres/open.js";
import { openInMemory } from "../../src/store/sqlite/open.js";
import { newDatabase, testServer } from "../postgres/test-server.js";
import { describePrompts } from "./prompts.suite.js";

const server = await testServer();

describePrompts("prompts in SQLite", async () => openInMemory());

describe.skipIf(server.url === null)("on a real server", () => {
  describePrompts("prompts in PostgreSQL", async () => openPostgres(await newDatabase(server.url ?? "")));
});
