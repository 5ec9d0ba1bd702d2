import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkDatabase, rebuildIndexes } from "../../../src/store/check/check-database.js";
import { backupDatabase, openDatabase } from "../../../src/store/database/open-database.js";
import {
  RECORD_COLUMNS,
  type RecordRow,
  readRecord,
  rewriteValues,
  WRITES,
} from "../../../src/store/journal/journal-sql.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { InlineJournal } from "../../../src/store/sqlite/sqlite-journal.js";
import { behind, exchanges } from "../api/shared-messages.suite.js";
import { type Asked, composeInto, scopeOf } from "../api/stored-compose.js";
import { DrivenStore } from "../journal/driven-store.js";

const directory = mkdtempSync(join(tmpdir(), "memprefix-check-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const sound = join(directory, "sound.db");
let files = 0;

/** Enough of one user for a snapshot, with records behind it. */
const REQUESTS_OF_ANA = 40;

beforeAll(async () => {
  const store = new JournalStore(new InlineJournal(openDatabase(sound)));
  const memories = { tea: "Ana drinks green tea.", cat: "Ana has a cat." };
  const ask = (user: string, requestId: string, more: Partial<Asked> = {}) =>
    composeInto(store, scopeOf(user), { requestId, question: `Question ${requestId}?`, memories, ...more });
  const conversationId = "tea";
  await ask("ana", "first", { conversationId });
  await ask("ana", "second", { conversationId, history: ["Question first?", "Yes."] });
  for (let at = 2; at < REQUESTS_OF_ANA; at++) await ask("ana", `r${at}`);
  for (const user of ["ben", "cy"]) await ask(user, "r1", { conversationId });
  await store.close();
});

/** The findings of a copy with something changed. */
async function findingsWith(change: (sqlite: Database.Database) => void): Promise<readonly string[]> {
  const file = join(directory, `changed-${++files}.db`);
  copyFileSync(sound, file);
  const sqlite = new Database(file);
  sqlite.pragma("foreign_keys = OFF");
  change(sqlite);
  sqlite.close();
  return (await checkDatabase(file)).findings;
}

/** Changes what a record says, with a checksum that fits. */
function rewritten(sqlite: Database.Database, where: string, change: (said: string) => string): void {
  const newest = `select ${RECORD_COLUMNS} from journal j where ${where} order by seq desc limit 1`;
  const row = sqlite.prepare<[], RecordRow>(newest).get();
  if (row === undefined) throw new Error("no such record");
  const record = readRecord(row);
  const changed = { ...record, said: change(record.said ?? "") };
  expect(changed.said).not.toBe(record.said);
  const values = rewriteValues(changed).map((value, at) => [at + 1, value]);
  sqlite.prepare(WRITES.rewrite.text).run(Object.fromEntries(values));
}

describe("a check of the journal", () => {
  it("finds nothing in a sound file, and counts its scopes and requests", async () => {
    const { findings, scopes, requests, schema } = await checkDatabase(sound);
    expect(findings).toEqual([]);
    expect(schema.applied).toBe(schema.known);
    expect(scopes).toBe(3);
    expect(requests).toBe(REQUESTS_OF_ANA + 2);
  });

  it.each([
    ["update journal set said = replace(said, 'a', 'b') where n = 1", "record 1 of scope 1: its checksum is another's"],
    ["update journal set leaf = leaf + 1 where n = 2", "record 2 of scope 1: its checksum"],
    ["update snapshots set data = replace(data, 'Ana', 'Eve')", "its snapshot is damaged"],
    ["delete from journal where n = 1 and scope_id = 1", "which does not precede it"],
    ["delete from known_memories", "missing from those that walks find"],
    ["delete from instructions", "instructions that are missing"],
    ["delete from scopes where scope_id = 2", "refers to a missing row of scopes"],
    ["update journal set kind = 99", "no record is of kind 99"],
  ])("%s is found", async (sql, finding) => {
    const findings = await findingsWith((sqlite) => sqlite.exec(sql));
    expect(findings.join("\n")).toContain(finding);
    expect(findings.join("\n")).not.toMatch(/drinks|tea\b/);
  });

  it("finds a record that says something else than its key, though its checksum fits", async () => {
    const other = await findingsWith((sqlite) =>
      rewritten(sqlite, "kind = 1 and conversation is not null", (said) => said.replace('"tea"', '"milk"')),
    );
    expect(other.join("\n")).toMatch(/another conversation/);
    const damaged = await findingsWith((sqlite) => rewritten(sqlite, "kind = 1", () => "[1,2]"));
    expect(damaged.join("\n")).toContain("a composed request");
    const longer = await findingsWith((sqlite) => rewritten(sqlite, "kind = 1", (said) => said.replace(/\]$/, ",0]")));
    expect(longer.join("\n")).toContain("has another form than it is written in");
  });

  it("finds a message that is missing, or another, though turns refer to it", async () => {
    const file = join(directory, "shared.db");
    const driven = new DrivenStore(new JournalStore(new InlineJournal(openDatabase(file))));
    for (const requestId of ["r1", "r2"]) await driven.compose(scopeOf("ana"), behind(exchanges(2), { requestId }));
    await driven.store.close();
    expect((await checkDatabase(file)).findings).toEqual([]);
    const findingsAfter = async (sql: string) => {
      const sqlite = new Database(file);
      expect(sqlite.prepare(sql).run().changes).toBe(1);
      sqlite.close();
      return (await checkDatabase(file)).findings.join("\n");
    };
    const message = "where messages like '%Question 1?%'";
    const another = await findingsAfter(`update instructions set messages = replace(messages, 'on', 'ON') ${message}`);
    expect(another).toContain("a shared message: not what its digest says");
    expect(another).not.toContain("Question");
    expect(await findingsAfter(`update instructions set messages = '{' ${message}`)).toContain("not valid JSON");
    const missing = await findingsAfter("delete from instructions where messages = '{'");
    expect(missing).toContain("turn 1 of record 1 was given a message that is missing");
  });

  it("finds indexes that do not have every record, which can be made again", async () => {
    const file = join(directory, "unindexed.db");
    copyFileSync(sound, file);
    const sqlite = new Database(file);
    // What a damaged index looks like: a record that it does not list.
    sqlite.unsafeMode(true);
    sqlite.pragma("writable_schema = ON");
    const indexSql = sqlite.prepare("select sql from sqlite_master where name = 'journal_by_request'").pluck().get();
    sqlite
      .prepare("update sqlite_master set sql = ? where name = 'journal_by_request'")
      .run(String(indexSql).replace("is not null", "= 'nobody'"));
    sqlite.close();
    const reindexed = new Database(file);
    reindexed.exec("reindex journal_by_request");
    reindexed.unsafeMode(true);
    reindexed.pragma("writable_schema = ON");
    reindexed.prepare("update sqlite_master set sql = ? where name = 'journal_by_request'").run(indexSql);
    reindexed.close();
    expect((await checkDatabase(file)).findings.join("\n")).toContain("journal_by_request");
    expect((await checkDatabase(file)).findings.join("\n")).toContain("is not found by its id");
    rebuildIndexes(file);
    expect((await checkDatabase(file)).findings).toEqual([]);
  });

  it("finds nothing in a backup that was made while records were written", async () => {
    const file = join(directory, "busy.db");
    copyFileSync(sound, file);
    const journal = new InlineJournal(openDatabase(file));
    const backup = join(directory, "backup.db");
    const making = backupDatabase(file, backup);
    for (let at = 0; at < 20; at++)
      await journal.keepFirstTokenTime("vllm", { uncachedTokens: at, cachedTokens: 0, ms: 1 }, 5);
    await making;
    await journal.close();
    expect(await checkDatabase(backup)).toMatchObject({ findings: [], scopes: 3 });
  });
});
