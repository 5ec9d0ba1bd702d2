import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { CommitGroup } from "../../../src/store/database/commit-group.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { composeWith, memories, openService } from "../../service/compose/service-fixture.js";

const directory = mkdtempSync(join(tmpdir(), "memstem-commits-"));
afterAll(() => rmSync(directory, { recursive: true }));
let files = 0;

function openGroup() {
  const file = join(directory, `${++files}.db`);
  const sqlite = new Database(file);
  sqlite.pragma("journal_mode = WAL");
  sqlite.exec("create table kept (value text unique)");
  const other = new Database(file);
  const group = new CommitGroup(sqlite);
  const keep = (value: string) => group.run(() => sqlite.prepare("insert into kept values (?)").run(value));
  const seen = (by: Database.Database) => by.prepare("select value from kept order by value").pluck().all();
  return { sqlite, other, group, keep, seen };
}

describe("commits that come together", () => {
  it("are seen by this connection at once, by others when they are settled", async () => {
    const { sqlite, other, group, keep, seen } = openGroup();
    keep("a");
    keep("b");
    expect(seen(sqlite)).toEqual(["a", "b"]);
    expect(seen(other)).toEqual([]);
    await group.settled;
    expect(seen(other)).toEqual(["a", "b"]);
  });

  it("do not go with one that fails, and what it did is undone", async () => {
    const { sqlite, other, group, keep, seen } = openGroup();
    keep("a");
    expect(() =>
      group.run(() => {
        sqlite.exec("insert into kept values ('half')");
        sqlite.exec("insert into kept values ('a')");
      }),
    ).toThrow("UNIQUE");
    keep("b");
    await group.settled;
    expect(seen(other)).toEqual(["a", "b"]);
  });

  it("are stored at once when something has to come after them", () => {
    const { other, group, keep, seen } = openGroup();
    keep("a");
    group.flush();
    expect(seen(other)).toEqual(["a"]);
  });

  it("are not kept waiting by many more", () => {
    const { other, keep, seen } = openGroup();
    for (let n = 0; n < 32; n++) keep(String(n));
    expect(seen(other)).toHaveLength(32);
  });

  it("fail together where the transaction cannot be ended, and later ones are stored", async () => {
    const { sqlite, other, group, keep, seen } = openGroup();
    sqlite.exec("create table of_kept (value text references kept (value) deferrable initially deferred)");
    sqlite.pragma("foreign_keys = ON");
    keep("a");
    const { settled } = group;
    // Checked when the transaction ends.
    group.run(() => sqlite.exec("insert into of_kept values ('nobody')"));
    await expect(settled).rejects.toThrow("FOREIGN KEY");
    keep("b");
    await group.settled;
    expect(seen(other)).toEqual(["b"]);
  });
});

describe("a service whose disk is full", () => {
  it("answers nothing that is not stored, and goes on as if it had not been asked", async () => {
    const database = openDatabase(join(directory, "full.db"));
    const service = openService({ database });
    const ask = (user: string, requestId: string, text: string) =>
      composeWith(service, {
        userId: user as UserId,
        requestId,
        conversationId: "c",
        messages: [{ role: "user", content: "Where?" }],
        memories: memories({ m: text }),
      });
    await ask("ana", "r1", "Ana lives here.");
    const pages = database.sqlite.pragma("page_count", { simple: true }) as number;
    database.sqlite.pragma(`max_page_count = ${pages}`);
    const long = "far away ".repeat(2_000);
    const failed = await Promise.allSettled([
      ask("bo", "r2", "Bo lives there."),
      ask("cy", "r3", long),
      ask("ana", "r4", long),
    ]);
    expect(failed.map(({ status }) => status)).toContain("rejected");
    database.sqlite.pragma("max_page_count = 1000000");
    for (const [at, [user, requestId, text]] of [
      ["bo", "r2", "Bo lives there."],
      ["cy", "r3", long],
      ["ana", "r4", long],
    ].entries() as Iterable<[number, [string, string, string]]>) {
      const before = failed[at];
      const answer = await ask(user, requestId, text);
      if (before?.status === "fulfilled") expect(answer).toEqual(before.value);
      expect(JSON.stringify(answer.messages)).toContain(text.trim());
      expect(answer.messages).toHaveLength(1);
    }
    expect((await service.describeIndex("bo" as UserId, null, 10)).counts).toMatchObject({ blocks: 1, requests: 1 });
    expect((await service.describeIndex("ana" as UserId, null, 10)).counts).toMatchObject({ blocks: 2, requests: 2 });
    await service.close();
  });
});
