import { mkdtemp, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkUsage } from "../../../src/store/check/check-usage.js";
import { threadedUsageLog } from "../../../src/store/usage/threaded-usage-log.js";
import { composed, reported } from "../usage/usage-entries.js";

const NOW = 1_800_000_000_000;

describe("checking a usage log", () => {
  let directory: string;
  let file: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "memstem-check-usage-"));
    file = join(directory, "usage.db");
    const log = threadedUsageLog({ file });
    for (let n = 0; n < 40; n++) {
      const key = { request: `r${n}`, user: `u${n % 3}`, agent: n % 2 === 0 ? null : "guide" };
      await log.record(
        [
          composed({ ...key, at: NOW, conversation: `c${n % 4}`, expected: 1_500, reusable: 1_900 }),
          reported({ ...key, cached: 700 }),
        ],
        NOW,
      );
    }
    await log.close();
  });
  afterEach(() => rm(directory, { recursive: true }));

  function change(sql: string): void {
    const sqlite = new Database(file);
    sqlite.exec(sql);
    sqlite.close();
  }

  it("finds nothing wrong with one, also while it is written to", async () => {
    expect(checkUsage(file)).toEqual({ prompts: 40, findings: [] });
    const log = threadedUsageLog({ file });
    await log.record([composed({ request: "new", at: NOW })], NOW);
    expect(checkUsage(file)).toEqual({ prompts: 41, findings: [] });
    await log.close();
  });

  it("finds prompts without a user or a conversation, names without prompts, and a wrong count", () => {
    change("delete from usage_owners where name = 'u2' and conversation = ''");
    expect(checkUsage(file).findings).toEqual(["file: 13 prompts belong to no user"]);
    change("delete from usage_owners where name = 'u2'");
    expect(checkUsage(file).findings).toContain("file: 13 prompts belong to no conversation");
    change("delete from usage_prompts where user_id not in (select id from usage_owners)");
    expect(checkUsage(file).findings).toEqual(["file: 40 prompts are counted, and 27 kept"]);
    change("delete from usage_prompts where user_id in (select id from usage_owners where name = 'u1')");
    expect(checkUsage(file).findings[0]).toMatch(/^file: \d+ names are kept of no prompt$/);
  });

  it("finds a file that is cut short", async () => {
    await truncate(file, 4_096 * 5);
    expect(checkUsage(file).findings.length).toBeGreaterThan(0);
  });
});
