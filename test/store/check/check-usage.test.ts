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
    directory = await mkdtemp(join(tmpdir(), "memprefix-check-usage-"));
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

  it("finds sums that are not those of the prompts, by their user", () => {
    change(
      "update usage_owners set missed_tokens = missed_tokens + 1 where name = 'u1' and agent = 'guide' and conversation = ''",
    );
    change("delete from usage_prompts where conversation_id = (select min(conversation_id) from usage_prompts)");
    const { findings } = checkUsage(file);
    expect(findings).toContain('file: user "default" "u1" "guide": the sums are not those of the prompts');
    expect(findings).toContain('file: user "default" "u0": a conversation\'s sums are not those of its prompts');
  });

  it("finds prompts without a user", () => {
    change("delete from usage_owners where name = 'u2'");
    expect(checkUsage(file).findings).toEqual(["file: 13 prompts belong to no user"]);
  });

  it("finds a file that is cut short", async () => {
    await truncate(file, 4_096 * 5);
    expect(checkUsage(file).findings.length).toBeGreaterThan(0);
  });
});
