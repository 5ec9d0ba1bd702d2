import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { openInMemory, openOwned } from "../../../src/store/sqlite/open.js";
import { describeRandomUse } from "../random-use.suite.js";
import { describeStore } from "../store.suite.js";

const root = mkdtempSync(join(tmpdir(), "memprefix-store-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describeStore("SQLite in memory", () => ({ database: openInMemory(), beside: null }));

const openFile = () => {
  const directory = mkdtempSync(join(root, "data-"));
  // Another store of the same process: other processes do not write.
  const open = () => openOwned(directory).database;
  return { database: open(), beside: async () => open() };
};
describeStore("SQLite in a file", openFile);
describeRandomUse(openFile);
