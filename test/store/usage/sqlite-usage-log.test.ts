import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { threadedUsageLog } from "../../../src/store/usage/threaded-usage-log.js";
import { composed } from "./usage-entries.js";
import { usageLogSuite } from "./usage-log.suite.js";

describe("the usage log in SQLite", () => {
  let directory = "";
  let files = 0;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "memprefix-usage-"));
  });
  afterAll(() => rm(directory, { recursive: true }));
  const newFile = () => join(directory, `usage-${files++}.db`);

  usageLogSuite(async (bounds) => threadedUsageLog({ file: newFile() }, bounds));

  it("is there after it was closed, and for two processes at once", async () => {
    const file = newFile();
    const first = threadedUsageLog({ file });
    const second = threadedUsageLog({ file });
    await first.record([composed({ request: "1", at: 1_000 })], 1_000);
    await second.record([composed({ request: "2", at: 1_000 })], 1_000);
    await Promise.all([first.close(), second.close()]);
    const again = threadedUsageLog({ file });
    expect((await again.prompts({ tenant: "default" }, null, 9)).rows).toHaveLength(2);
    await again.close();
  });

  it("leaves no name of a deleted user in its files", async () => {
    const file = newFile();
    const log = threadedUsageLog({ file });
    const userId = "ana-with-a-name-of-her-own" as UserId;
    await log.record([composed({ request: "1", at: 1_000, user: userId, conversation: "about-ana" })], 1_000);
    const bytes = async () => Buffer.concat([await readFile(file), await readFile(`${file}-wal`)]).toString("latin1");
    expect(await bytes()).toContain(userId);
    await log.deleteUser("default", userId, 2_000);
    expect(await bytes()).not.toMatch(/with-a-name-of-her-own|about-ana/);
    await log.close();
  });

  it("makes no file where nothing was recorded", async () => {
    const log = threadedUsageLog({ file: newFile() });
    await log.deleteUser("default", "ana" as UserId, 1);
    expect(await log.exportUser("default", "ana" as UserId)).toEqual([]);
    await log.close();
    await expect(readFile(join(directory, `usage-${files - 1}.db`))).rejects.toThrow("ENOENT");
  });
});
