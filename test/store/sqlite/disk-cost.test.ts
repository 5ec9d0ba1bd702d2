import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import Database from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { LogCheckpoints } from "../../../src/store/sqlite/journal-writer.js";
import { ThreadedJournal } from "../../../src/store/sqlite/sqlite-journal.js";
import { composeInto, scopeOf } from "../api/stored-compose.js";

const directory = mkdtempSync(join(tmpdir(), "memprefix-disk-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let files = 0;
const newFile = () => join(directory, `${++files}.db`);

/** A thread runs what was built. */
const THREAD = pathToFileURL(resolve(import.meta.dirname, "../../../dist/store/sqlite/journal-thread.js"));

/** Bytes of a log's header, and of what stands before each of its pages (https://sqlite.org/fileformat2.html#walformat). */
const LOG_HEADER = 32;
const PAGE_HEADER = 24;

/** Pages that a log has room for: as many as it ever held. */
function pagesOfLog({ name }: Database.Database, pageBytes: number): number {
  return (statSync(`${name}-wal`).size - LOG_HEADER) / (PAGE_HEADER + pageBytes);
}

const pageBytesOf = (sqlite: Database.Database) => Number(sqlite.pragma("page_size", { simple: true }));

describe("a database file", () => {
  it("has rows of some hundred bytes share pages: in a tree without row ids, each would take one of its own", () => {
    const { sqlite } = openDatabase(":memory:");
    const alone = sqlite.prepare("select name from pragma_table_list where wr = 1 order by name").pluck().all();
    expect(alone).toEqual([]);
    sqlite.close();
  });

  it.each([
    ["journal", "request_id = 'a'"],
    ["journal", "scope_id = 1 and request_id = 'a'"],
    ["journal", "scope_id = 1 and n > 5 order by n"],
    ["snapshots", "scope_id = 1"],
    ["instructions", "scope_id = 1 and digest = 'a'"],
    ["responses", "scope_id = 1 and id = 'a'"],
    ["responses", "tenant = 'a' order by used desc"],
  ])("finds rows of %s where %s by an index", (table, where) => {
    const { sqlite } = openDatabase(":memory:");
    const plan = sqlite.prepare(`explain query plan select * from ${table} where ${where}`).all() as {
      detail: string;
    }[];
    expect(plan.map(({ detail }) => detail)).toEqual([
      expect.stringMatching(new RegExp(`^SEARCH ${table} USING (?:INDEX|PRIMARY KEY|INTEGER PRIMARY KEY)`)),
    ]);
    sqlite.close();
  });
});

describe("a compose", () => {
  it("writes some seven kilobytes, where two hundred users take turns", async () => {
    const database = openDatabase(newFile());
    const { sqlite } = database;
    const pageBytes = pageBytesOf(sqlite);
    const store = new JournalStore(new ThreadedJournal(database, THREAD));
    const [users, turns] = [200, 5];
    const memory = (n: number) => [`memory-${(n * 7_919) % 10_007}`, `What is remembered as number ${n}. `.repeat(4)];
    const under: Promise<unknown>[] = [];
    // A log that is read does not begin anew, so its length is all that was written.
    const reader = new Database(sqlite.name, { readonly: true });
    let composes = 0;
    let before = 0;
    for (let turn = 0; turn < turns; turn++) {
      // The first of each makes its scope: what every next one costs is counted.
      if (turn === 1) {
        await store.emptyLog();
        await store.erased();
        reader.exec("begin");
        reader.prepare("select count(*) from scopes").get();
        before = Math.max(0, pagesOfLog(sqlite, pageBytes));
      }
      for (let user = 0; user < users; user++) {
        const memories = Object.fromEntries(Array.from({ length: 20 }, (_, at) => memory(turn * 10 + at)));
        const requestId = String(++composes).padStart(8, "0");
        const scope = scopeOf(`user-${(user * 77) % users}`);
        under.push(composeInto(store, scope, { requestId, question: `And ${turn}?`, memories }));
        // As many share a transaction as at some hundred a second.
        if (composes % 8 === 0) await Promise.all(under.splice(0));
      }
    }
    const pages = (pagesOfLog(sqlite, pageBytes) - before) / (users * (turns - 1));
    expect(pages).toBeGreaterThan(1);
    // 7,100 when this was written, and 13,500 with a table for each kind of thing.
    expect(pages * pageBytes).toBeLessThan(9_000);
    reader.close();
    await store.close();
  });
});

describe("the log", () => {
  it("begins anew in time, however much a transaction writes", () => {
    const { sqlite } = openDatabase(newFile());
    // SQLite itself has nothing to do.
    sqlite.pragma("wal_autocheckpoint = 0");
    const checkpoints = new LogCheckpoints(sqlite);
    sqlite.exec("create table filler (id integer primary key, bytes blob)");
    const fill = sqlite.prepare("insert or replace into filler values (?, randomblob(1500))");
    const [transactions, pages, calls] = [500, 60, 16];
    const write = sqlite.transaction((at: number) => {
      for (let page = 0; page < pages; page++) fill.run((at % 20) * pages + page);
    });
    for (let at = 0; at < transactions; at++) {
      write(at);
      checkpoints.wrote(calls);
    }
    expect(pagesOfLog(sqlite, pageBytesOf(sqlite))).toBeLessThan((transactions * pages) / 4);
    sqlite.close();
  });
});
