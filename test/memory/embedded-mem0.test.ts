import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openEmbeddedMem0 } from "../../src/memory/embedded-mem0.js";
import { openEmbeddedStore } from "../../src/memory/embedded-store.js";
import type { MemorySource } from "../../src/memory/memory-source.js";
import { failureOf, scopeOf } from "./memory-source.suite.js";

const never = new AbortController().signal;
const ada = scopeOf("ada");
const bob = scopeOf("bob");

/** With names and quotes, which Mem0's entity extraction looks for. */
const SECRET = 'Dr. Quetzalcoatl Zwingli told Ada about "Project Xylophone" in Ouagadougou';
const WORDS = ["Quetzalcoatl", "Zwingli", "zwingli", "Xylophone", "xylophone", "Ouagadougou", "ouagadougou"];

/** So long that SQLite keeps it on pages of its own, which a deletion frees as they are. */
const LONG_SECRET = `${SECRET}. `.repeat(100);

const marker = () => join(dataDir, "mem0", "erasure-pending");

let root: string;
let dataDir: string;
const opened: MemorySource[] = [];
function open(options: { threshold?: number; dataDir?: string } = {}): MemorySource {
  const source = openEmbeddedMem0({ dataDir, ...options });
  opened.push(source);
  return source;
}

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "memstem-files-"));
  dataDir = join(root, "data");
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  for (const source of opened.splice(0)) await source.close();
  await rm(root, { recursive: true });
});

function search(source: MemorySource, query: string, scope = ada, topK = 10) {
  return source.search({ scope, query, topK }, never);
}

/** Every file below a directory, as paths relative to it. */
function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .toSorted();
}

/** Which words are to be read anywhere in the data directory: in rows, free pages, journals or names. */
function wordsOnDisk(words: readonly string[]): string[] {
  const files = filesIn(dataDir);
  const bytes = Buffer.concat(files.map((name) => readFileSync(join(dataDir, name))));
  return words.filter((word) => bytes.includes(word) || files.some((name) => name.includes(word)));
}

function rowsOf(database: string): unknown[] {
  const handle = new Database(join(dataDir, "mem0", database), { readonly: true });
  const tables = handle.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
  expect(tables).toContain("vectors");
  const rows = handle.prepare("SELECT * FROM vectors").all();
  handle.close();
  return rows;
}

describe("what the embedded Mem0 touches", () => {
  it("writes nothing outside its directory and opens no connection", async () => {
    const [home, temporary, work] = ["home", "tmp", "work"].map((name) => join(root, name)) as [string, string, string];
    for (const directory of [home, temporary, work]) mkdirSync(directory);
    vi.stubEnv("HOME", home);
    vi.stubEnv("TMPDIR", temporary);
    vi.stubEnv("SQLITE_TMPDIR", temporary);
    const before = process.cwd();
    process.chdir(work);
    const fetched = vi.spyOn(globalThis, "fetch");
    const connected = vi.spyOn(Socket.prototype, "connect");
    try {
      const source = open();
      await source.add(ada, [{ text: SECRET }, { text: "Ada drinks green tea" }], never);
      const [first] = await search(source, "What did Dr. Zwingli tell Ada in Ouagadougou?");
      await source.delete(ada, first?.id ?? fail("no memory"), never);
      await source.deleteUser(ada, never);
      await source.close();
    } finally {
      process.chdir(before);
    }
    expect(filesIn(root)).toEqual(["data/mem0/config.json", "data/mem0/vectors.db", "data/mem0/vectors_entities.db"]);
    expect(fetched).not.toHaveBeenCalled();
    expect(connected).not.toHaveBeenCalled();
  });

  it("leaves MEM0_DIR as it was, and two data directories apart", async () => {
    vi.stubEnv("MEM0_DIR", "/somewhere/else");
    const [one, two] = [open({ dataDir: join(root, "one") }), open({ dataDir: join(root, "two") })];
    await Promise.all([one.add(ada, [{ text: "in one" }], never), two.add(ada, [{ text: "in two" }], never)]);
    expect(process.env.MEM0_DIR).toBe("/somewhere/else");
    expect(filesIn(root).filter((name) => name.endsWith("config.json"))).toEqual([
      "one/mem0/config.json",
      "two/mem0/config.json",
    ]);
    expect(await search(one, "in")).toMatchObject([{ text: "in one" }]);
  });

  it("prints nothing on stdout", async () => {
    const printed = (["log", "info", "debug"] as const).map((level) => vi.spyOn(console, level));
    const source = open();
    await source.add(ada, [{ text: SECRET }], never);
    await search(source, "yesterday with Dr. Zwingli", ada, 100);
    await source.deleteUser(ada, never);
    expect(printed.flatMap((spy) => spy.mock.calls)).toEqual([]);
  });

  it("loads nothing before the first call", async () => {
    const source = open();
    expect(filesIn(root)).toEqual([]);
    await source.close();
    expect(filesIn(root)).toEqual([]);
  });
});

describe("what the embedded Mem0 forgets", () => {
  it("has the text nowhere on disk once a memory is deleted", async () => {
    const source = open();
    const [added] = await source.add(ada, [{ text: LONG_SECRET }, { text: "Ada drinks green tea" }], never);
    await search(source, SECRET);
    expect(wordsOnDisk(WORDS)).toEqual(WORDS);
    expect(await source.delete(ada, added?.id ?? fail("no memory"), never)).toBe(true);
    expect(wordsOnDisk(WORDS)).toEqual([]);
    expect(wordsOnDisk(["green tea"])).toEqual(["green tea"]);
  });

  it("has neither rows nor text nor the name of a user that it forgot", async () => {
    const source = open();
    const user = scopeOf("Zwingli");
    for (const scope of [user, scopeOf("Zwingli", "Xylophone"), bob]) {
      await source.add(
        scope,
        Array.from({ length: 40 }, (_, index) => ({ text: `${SECRET} ${index}` })),
        never,
      );
    }
    await source.deleteUser(user, never);
    expect(rowsOf("vectors.db")).toHaveLength(40);
    await source.deleteUser(bob, never);
    expect(rowsOf("vectors.db")).toEqual([]);
    expect(wordsOnDisk([...WORDS, "bob"])).toEqual([]);
  });

  it("puts nothing into the entity store", async () => {
    const source = open();
    await source.add(ada, [{ text: SECRET }, { text: 'Ada met "The Quetzalcoatl Society" in Paris' }], never);
    await search(source, "Who is Dr. Quetzalcoatl Zwingli of Ouagadougou?");
    expect(rowsOf("vectors_entities.db")).toEqual([]);
  });

  it("finishes an erasure that a crash cut off", async () => {
    const source = open();
    await source.add(ada, [{ text: LONG_SECRET }, { text: "Ada drinks green tea" }], never);
    await source.close();
    // What a process leaves that is killed between the deletion and the erasure.
    writeFileSync(marker(), "");
    const database = new Database(join(dataDir, "mem0", "vectors.db"));
    database.prepare("DELETE FROM vectors WHERE payload LIKE '%Zwingli%'").run();
    database.close();
    expect(wordsOnDisk(WORDS)).not.toEqual([]);
    expect(await search(open(), "tea")).toMatchObject([{ text: "Ada drinks green tea" }]);
    expect(wordsOnDisk(WORDS)).toEqual([]);
    expect(existsSync(marker())).toBe(false);
  });

  it("deletes even where it cannot erase now, and erases the next time", async () => {
    const source = open();
    const [secret, tea] = await source.add(ada, [{ text: LONG_SECRET }, { text: "Ada drinks green tea" }], never);
    const sqlite = Database.prototype.exec;
    const exec = vi.spyOn(Database.prototype, "exec").mockImplementation(function (this: Database.Database, sql) {
      if (sql === "VACUUM") throw new Error("database or disk is full");
      return sqlite.call(this, sql);
    });
    expect(await source.delete(ada, secret?.id ?? fail("no memory"), never)).toBe(true);
    exec.mockRestore();
    expect(await search(source, "Zwingli")).not.toMatchObject([{ text: LONG_SECRET }]);
    expect(wordsOnDisk(WORDS)).not.toEqual([]);
    expect(existsSync(marker())).toBe(true);
    expect(await source.delete(ada, tea?.id ?? fail("no memory"), never)).toBe(true);
    expect(wordsOnDisk(WORDS)).toEqual([]);
    expect(existsSync(marker())).toBe(false);
  });

  it("says to one caller only that it deleted a memory", async () => {
    const source = open();
    const [added] = await source.add(ada, [{ text: "Ada drinks green tea" }], never);
    const id = added?.id ?? fail("no memory");
    const outcomes = await Promise.all([1, 2, 3].map(() => source.delete(ada, id, never)));
    expect(outcomes).toEqual([true, false, false]);
  });

  it("erases once for deletions that wait together", async () => {
    const source = open();
    const added = await source.add(
      ada,
      Array.from({ length: 10 }, (_, index) => ({ text: `tea ${index}` })),
      never,
    );
    const vacuumed = vi.spyOn(Database.prototype, "exec");
    await Promise.all(added.map(({ id }) => source.delete(ada, id, never)));
    expect(vacuumed.mock.calls.filter(([sql]) => sql === "VACUUM").length).toBeLessThanOrEqual(4);
    expect(await search(source, "tea")).toEqual([]);
  });
});

describe("what the embedded Mem0 keeps", () => {
  it("has its memories after it was closed and opened again", async () => {
    const first = open();
    const [added] = await first.add(ada, [{ text: "Ada drinks green tea" }], never);
    await first.close();
    expect(await search(open(), "What does Ada drink?")).toEqual([added]);
  });

  it("gives back every text as it was given", async () => {
    const source = open();
    const texts = [
      "  spaces around  ",
      "line\nbreaks\r\n",
      "e\u0301 is not é",
      "👩‍👩‍👧",
      "quotes ' \" ` \\",
      "x".repeat(100_000),
    ];
    await source.add(
      ada,
      texts.map((text) => ({ text })),
      never,
    );
    const strict = await search(open({ threshold: 0 }), "spaces, line breaks, quotes", ada, 100);
    expect(strict.every(({ text }) => texts.includes(text))).toBe(true);
    expect(rowsOf("vectors.db")).toHaveLength(texts.length);
  });

  it("does not remove duplicates, which is the composer's work", async () => {
    const source = open();
    await source.add(ada, [{ text: "Ada drinks tea" }, { text: "Ada drinks tea" }], never);
    expect(await search(source, "tea")).toHaveLength(2);
  });
});

describe("how the embedded Mem0 searches", () => {
  it("finds nothing for a blank query, and takes one of any length", async () => {
    const source = open();
    await source.add(ada, [{ text: "Ada drinks green tea" }], never);
    expect(await search(source, " \n")).toEqual([]);
    const start = performance.now();
    expect(await search(source, `What tea does Ada drink? ${"and so on ".repeat(20_000)}`)).toHaveLength(1);
    expect(performance.now() - start).toBeLessThan(3_000);
  });

  it("leaves out what is less similar than the threshold", async () => {
    await open().add(
      ada,
      [{ text: "Ada drinks green tea every morning" }, { text: "The bicycle has a flat tyre" }],
      never,
    );
    const query = "Ada drinks green tea every morning";
    expect(await search(open({ threshold: 0.9 }), query)).toMatchObject([{ text: query }]);
  });

  it.each([-0.1, 1.1, Number.NaN])("refuses a threshold of %d", (threshold) => {
    expect(() => open({ threshold })).toThrow(TypeError);
  });

  it("lets other work run while it adds many memories", async () => {
    const source = open();
    await search(source, "warm up");
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    await source.add(
      ada,
      Array.from({ length: 20 }, (_, index) => ({ text: `tea number ${index}` })),
      never,
    );
    clearInterval(timer);
    expect(turns).toBeGreaterThanOrEqual(10);
  });

  it("stops adding when the signal aborts, and keeps what it had added", async () => {
    const source = open();
    await search(source, "warm up");
    const abort = new AbortController();
    const adding = source.add(
      ada,
      Array.from({ length: 200 }, (_, index) => ({ text: `tea ${index}` })),
      abort.signal,
    );
    setTimeout(() => abort.abort(), 30);
    expect(await failureOf(adding)).toEqual({ kind: "aborted" });
    await source.close();
    expect(rowsOf("vectors.db").length).toBeLessThan(200);
  });
});

describe("how the embedded Mem0 fails", () => {
  it("says that it could not be opened, and opens when it can", async () => {
    const source = open();
    const inTheWay = join(dataDir, "mem0", "vectors.db");
    mkdirSync(inTheWay);
    vi.spyOn(console, "error").mockImplementation(() => {});
    expect(await failureOf(search(source, "tea"))).toMatchObject({ kind: "unreachable", cause: /unable to open/ });
    await rm(inTheWay, { recursive: true });
    await source.add(ada, [{ text: "Ada drinks green tea" }], never);
    expect(await search(source, "tea")).toHaveLength(1);
  });

  it("throws at once where the data directory cannot be made", () => {
    writeFileSync(join(root, "file"), "");
    expect(() => open({ dataDir: join(root, "file") })).toThrow();
  });

  it("says that the database is no database", async () => {
    mkdirSync(join(dataDir, "mem0"), { recursive: true });
    writeFileSync(join(dataDir, "mem0", "vectors.db"), "not a database, but long enough to be looked at".repeat(50));
    vi.spyOn(console, "error").mockImplementation(() => {});
    const cause = "SQLITE_NOTADB: file is not a database";
    expect(await failureOf(search(open(), "tea"))).toEqual({ kind: "unreachable", cause });
  });

  it("rejects every call once it is closed", async () => {
    const source = open();
    await source.close();
    const closed = { kind: "unreachable", cause: "it is closed" };
    expect(await failureOf(search(source, "tea"))).toEqual(closed);
    expect(await failureOf(source.add(ada, [{ text: "tea" }], never))).toEqual(closed);
    expect(await failureOf(source.deleteUser(ada, never))).toEqual(closed);
  });

  it("can be closed while it opens", async () => {
    const source = open();
    const failure = failureOf(search(source, "tea"));
    await source.close();
    expect(await failure).toEqual({ kind: "unreachable", cause: "it is closed" });
  });

  it("ends the writes under way before it closes", async () => {
    const source = open();
    await search(source, "warm up");
    const adding = source.add(ada, [{ text: "Ada drinks green tea" }], never);
    await new Promise(setImmediate);
    await source.close();
    await adding;
    expect(rowsOf("vectors.db")).toHaveLength(1);
  });
});

describe("the recorded OSS answers", () => {
  it("have the fields that the installed Mem0 gives", async () => {
    mkdirSync(dataDir);
    const { memory, close } = await openEmbeddedStore(dataDir);
    const added = await memory.add("Ada lives in Paris", { userId: "ada", agentId: "planner", infer: false });
    const id = added.results[0]?.id ?? fail("no id");
    await memory.update(id, { text: "Ada lives in London" });
    const found = await memory.search("London", { filters: { user_id: "ada" }, topK: 1 });
    close();
    const recorded = JSON.parse(readFileSync(join(import.meta.dirname, "fixtures/oss-search.json"), "utf8"));
    const fields = (items: readonly object[]) => [...new Set(items.flatMap((item) => Object.keys(item)))].toSorted();
    expect(fields(found.results)).toEqual(fields(recorded.results));
  });
});

function fail(what: string): never {
  throw new Error(what);
}
