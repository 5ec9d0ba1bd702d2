import { describe } from "vitest";
import { openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { threadedUsageLog } from "../../../src/store/usage/threaded-usage-log.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { usageLogSuite } from "./usage-log.suite.js";

const server = await testServer();

describe.skipIf(server.url === null)("the usage log in PostgreSQL", () => {
  usageLogSuite(async (bounds) => {
    const url = await newDatabase(server.url ?? "");
    const { journal } = await openPostgres(url);
    await journal.close();
    return threadedUsageLog({ url }, bounds);
  });
});
