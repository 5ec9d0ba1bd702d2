import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { migrate } from "drizzle-orm/better-sqlite3/migrator";
import { afterAll, describe, expect, it } from "vitest";
import { digestOf, ScopeState } from "../../../src/core/index.js";
import type { ScopesFound } from "../../../src/store/api/store.js";
import { DatabaseOpenError } from "../../../src/store/database/database-open-error.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { readScopesWithMemory } from "../../../src/store/records/memory-holders.js";
import { SqliteStore } from "../../../src/store/sqlite/sqlite-store.js";
import { describeStore } from "../api/store.suite.js";
import { allOf, composeInto, countTokens, id, recordFor, scopeOf } from "../api/stored-compose.js";

const directory = mkdtempSync(join(tmpdir(), "memstem-store-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let files = 0;
const newFile = () => join(directory, `store-${++files}.db`);
const TEA = { requestId: "r1", question: "What does she drink?", memories: { m1: "Ana likes tea." } };

describeStore("SQLite, file", () => new SqliteStore(openDatabase(newFile())));
describeStore("SQLite, in memory", () => new SqliteStore(openDatabase(":memory:")));

describe("SQLite database file", () => {
  it("is in WAL mode, and holds what was committed when it is opened again", async () => {
    const file = newFile();
    const first = new SqliteStore(openDatabase(file));
    await composeInto(first, scopeOf("ana"), TEA);
    const stored = await allOf(first, scopeOf("ana"));
    await first.close();
    const { sqlite } = openDatabase(file);
    expect(sqlite.pragma("journal_mode", { simple: true })).toBe("wal");
    sqlite.close();
    const second = new SqliteStore(openDatabase(file));
    expect(await allOf(second, scopeOf("ana"))).toEqual(stored);
    await second.close();
  });

  it("is seen by a second process's connection once a commit has resolved, and a stale one is refused", async () => {
    const file = newFile();
    const [one, two] = [new SqliteStore(openDatabase(file)), new SqliteStore(openDatabase(file))];
    const behind = await recordFor(two, scopeOf("ana"), { ...TEA, requestId: "r2" });
    await composeInto(one, scopeOf("ana"), TEA);
    expect(await two.findRequest(scopeOf("ana"), id("r1"))).not.toBeNull();
    await expect(two.commitCompose(scopeOf("ana"), behind.base, behind.record)).rejects.toThrow("another process");
    await one.close();
    await two.close();
  });

  it("changes nothing where a commit fails half way", async () => {
    const file = newFile();
    const store = new SqliteStore(openDatabase(file));
    await composeInto(store, scopeOf("ana"), TEA);
    const before = await allOf(store, scopeOf("ana"));
    const { base, record } = await recordFor(store, scopeOf("ana"), {
      ...TEA,
      requestId: "r2",
      memories: { m2: "More." },
    });
    // The turn's id is taken: the insert fails after blocks, nodes and counters were written.
    const { composition } = record;
    const turn = { ...composition.turn, id: 1 as never };
    const broken = { ...record, composition: { ...composition, turn } };
    await expect(store.commitCompose(scopeOf("ana"), base, broken)).rejects.toThrow("UNIQUE");
    expect(await allOf(store, scopeOf("ana"))).toEqual(before);
    await store.close();
  });

  it("finds who has a memory among tens of thousands of others', a piece at a time", async () => {
    const opened = openDatabase(newFile());
    const store = new SqliteStore(opened);
    for (const user of ["ana", "bo", "cy", "dee"]) await composeInto(store, scopeOf(user), TEA);
    await composeInto(store, scopeOf("eve", "another tenant"), TEA);
    await store.close();
    const { sqlite, orm } = openDatabase(opened.sqlite.name);
    sqlite.exec("delete from memory_versions where scope_id in (1, 3)");
    const fill = sqlite.prepare(`with recursive n (i) as (select 1 union all select i + 1 from n where i < 15000)
      insert into memory_versions (scope_id, memory_id, label, current) select ?, 'other-' || i, i + 100, 1 from n`);
    for (const scope of [1, 2, 3]) fill.run(scope);
    const found: string[] = [];
    let pieces = 0;
    for (let after: number | null = 0; after !== null; pieces++) {
      const { scopes, next }: ScopesFound = readScopesWithMemory(orm, "default", "m1", after);
      found.push(...scopes.map(({ userId }) => userId));
      after = next;
    }
    expect(found).toEqual(["bo", "dee"]);
    expect(pieces).toBe(2);
    sqlite.close();
  });

  it("says clearly that a file is no database, and leaves it as it is", () => {
    const file = newFile();
    writeFileSync(file, "this is not a database, but it is somebody's file".repeat(50));
    const before = readFileSync(file);
    expect(() => openDatabase(file)).toThrow(DatabaseOpenError);
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it("brings a file of before nodes had times and tokens up to date, and goes on with it", async () => {
    const migrations = fileURLToPath(new URL("../../../migrations", import.meta.url));
    const older = join(directory, "older-migrations");
    cpSync(migrations, older, { recursive: true });
    const journal = join(older, "meta", "_journal.json");
    const { entries, ...rest } = JSON.parse(readFileSync(journal, "utf8")) as { entries: { tag: string }[] };
    const upTo = entries.findIndex(({ tag }) => tag === "0003_residency");
    writeFileSync(journal, JSON.stringify({ ...rest, entries: entries.slice(0, upTo) }));
    const file = newFile();
    const sqlite = new Database(file);
    migrate(drizzle(sqlite), { migrationsFolder: older });
    sqlite.exec(`
      insert into users values (1, 'default', 'ana', '', 1, 2, 3, 2, 1, 0);
      insert into blocks values (1, 1, 'Ana likes tea.', 'digest', 9, null);
      insert into index_nodes (scope_id, id, parent, anchor, run, position, next_position, uses, live, last_used)
        values (1, 1, null, '${digestOf("anchor")}', '[]', 0, 1, 1, 0, 1), (1, 2, 1, null, '[1]', 0, 0, 1, 1, 1);
    `);
    sqlite.close();
    const store = new SqliteStore(openDatabase(file));
    const { scope } = await store.loadScope(scopeOf("ana"));
    expect(scope.nodes.map(({ usedAt, tokens }) => [usedAt, tokens])).toEqual([
      [0, 0],
      [0, 0],
    ]);
    const state = new ScopeState(scope, countTokens);
    state.index.check();
    // The blocks' tokens are the register's; what stood before them is known once it is served again.
    expect(state.index.tokens).toBe(9 - "[]".length);
    await composeInto(store, scopeOf("ana"), TEA);
    expect((await store.counts(scopeOf("ana"))).requests).toBe(1);
    await store.close();
  });

  it("refuses a file that a newer version wrote", async () => {
    const file = newFile();
    await new SqliteStore(openDatabase(file)).close();
    const sqlite = new Database(file);
    sqlite.prepare("insert into __drizzle_migrations (hash, created_at) values ('later', 9999999999999)").run();
    sqlite.close();
    expect(() => openDatabase(file)).toThrow("newer version");
  });
});
