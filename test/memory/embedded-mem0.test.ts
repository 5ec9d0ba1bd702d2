import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { openEmbeddedStore } from "../../src/memory/embedded-store.js";
import type { MemorySource, SearchOptions } from "../../src/memory/memory-source.js";
import { cpuTimer } from "../cpu-time.js";
import { ada, embeddedDirectory, never, present, SECRET, search } from "./embedded-directory.js";
import { failureOf, scopeOf } from "./memory-source.suite.js";

const directory = embeddedDirectory();

describe("what the embedded Mem0 touches", () => {
  it("writes nothing outside its directory and opens no connection", async () => {
    const [home, temporary, work] = ["home", "tmp", "work"].map((name) => join(directory.root, name)) as [
      string,
      string,
      string,
    ];
    for (const directory of [home, temporary, work]) mkdirSync(directory);
    vi.stubEnv("HOME", home);
    vi.stubEnv("TMPDIR", temporary);
    vi.stubEnv("SQLITE_TMPDIR", temporary);
    const before = process.cwd();
    process.chdir(work);
    const fetched = vi.spyOn(globalThis, "fetch");
    const connected = vi.spyOn(Socket.prototype, "connect");
    try {
      const source = directory.open();
      await source.add(ada, [{ text: SECRET }, { text: "Ada drinks green tea" }], never);
      const [first] = await search(source, "What did Dr. Zwingli tell Ada in Ouagadougou?");
      await source.delete(ada, present(first).id, never);
      await source.deleteUser(ada, never);
      await source.close();
    } finally {
      process.chdir(before);
    }
    expect(directory.files()).toEqual([
      "data/mem0/config.json",
      "data/mem0/vectors.db",
      "data/mem0/vectors_entities.db",
    ]);
    expect(fetched).not.toHaveBeenCalled();
    expect(connected).not.toHaveBeenCalled();
  });

  it("leaves MEM0_DIR as it was, and two data directories apart", async () => {
    vi.stubEnv("MEM0_DIR", "/somewhere/else");
    const [one, two] = [
      directory.open({ dataDir: join(directory.root, "one") }),
      directory.open({ dataDir: join(directory.root, "two") }),
    ];
    await Promise.all([one.add(ada, [{ text: "in one" }], never), two.add(ada, [{ text: "in two" }], never)]);
    expect(process.env.MEM0_DIR).toBe("/somewhere/else");
    expect(directory.files().filter((name) => name.endsWith("config.json"))).toEqual([
      "one/mem0/config.json",
      "two/mem0/config.json",
    ]);
    expect(await search(one, "in")).toMatchObject([{ text: "in one" }]);
  });

  it("prints nothing on stdout", async () => {
    const printed = (["log", "info", "debug"] as const).map((level) => vi.spyOn(console, level));
    const source = directory.open();
    await source.add(ada, [{ text: SECRET }], never);
    await search(source, "yesterday with Dr. Zwingli", ada, 100);
    await source.deleteUser(ada, never);
    expect(printed.flatMap((spy) => spy.mock.calls)).toEqual([]);
  });

  it("loads nothing before the first call", async () => {
    const source = directory.open();
    expect(directory.files()).toEqual([]);
    await source.close();
    expect(directory.files()).toEqual([]);
  });
});

describe("what the embedded Mem0 keeps", () => {
  it("has its memories after it was closed and opened again", async () => {
    const first = directory.open();
    const [added] = await first.add(ada, [{ text: "Ada drinks green tea" }], never);
    await first.close();
    expect(await search(directory.open(), "What does Ada drink?")).toEqual([
      { ...added, createdAt: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T/) },
    ]);
  });

  it("gives back every text as it was given", async () => {
    const source = directory.open();
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
    const strict = await search(directory.open({ threshold: 0 }), "spaces, line breaks, quotes", ada, 100);
    expect(strict.every(({ text }) => texts.includes(text))).toBe(true);
    expect(directory.rowsOf("vectors.db")).toHaveLength(texts.length);
  });
});

describe("how the embedded Mem0 searches", () => {
  it("finds nothing for a blank query, and takes one of any length", async () => {
    const source = directory.open();
    await source.add(ada, [{ text: "Ada drinks green tea" }], never);
    expect(await search(source, " \n")).toEqual([]);
    const cpuMs = cpuTimer();
    expect(await search(source, `What tea does Ada drink? ${"and so on ".repeat(20_000)}`)).toHaveLength(1);
    expect(cpuMs()).toBeLessThan(3_000);
  });

  it("leaves out what is less similar than the threshold", async () => {
    await directory
      .open()
      .add(ada, [{ text: "Ada drinks green tea every morning" }, { text: "The bicycle has a flat tyre" }], never);
    const query = "Ada drinks green tea every morning";
    expect(await search(directory.open({ threshold: 0.9 }), query)).toMatchObject([{ text: query }]);
  });

  it("lets other work run while it adds many memories", async () => {
    const source = directory.open();
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
    const source = directory.open();
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
    expect(directory.rowsOf("vectors.db").length).toBeLessThan(200);
  });
});

describe("how the embedded Mem0 fails", () => {
  it("says that it could not be opened, and opens when it can", async () => {
    const source = directory.open();
    const inTheWay = join(directory.dataDir, "mem0", "vectors.db");
    mkdirSync(inTheWay);
    vi.spyOn(console, "error").mockImplementation(() => {});
    expect(await failureOf(search(source, "tea"))).toMatchObject({ kind: "unreachable", cause: /unable to open/ });
    await rm(inTheWay, { recursive: true });
    await source.add(ada, [{ text: "Ada drinks green tea" }], never);
    expect(await search(source, "tea")).toHaveLength(1);
  });

  it("throws at once where the data directory cannot be made", () => {
    writeFileSync(join(directory.root, "file"), "");
    expect(() => directory.open({ dataDir: join(directory.root, "file") })).toThrow();
  });

  it("says that the database is no database", async () => {
    mkdirSync(join(directory.dataDir, "mem0"), { recursive: true });
    writeFileSync(
      join(directory.dataDir, "mem0", "vectors.db"),
      "not a database, but long enough to be looked at".repeat(50),
    );
    vi.spyOn(console, "error").mockImplementation(() => {});
    const cause = "SQLITE_NOTADB: file is not a database";
    expect(await failureOf(search(directory.open(), "tea"))).toEqual({ kind: "unreachable", cause });
  });

  it("rejects every call once it is closed", async () => {
    const source = directory.open();
    await source.close();
    const closed = { kind: "unreachable", cause: "it is closed" };
    expect(await failureOf(search(source, "tea"))).toEqual(closed);
    expect(await failureOf(source.add(ada, [{ text: "tea" }], never))).toEqual(closed);
    expect(await failureOf(source.deleteUser(ada, never))).toEqual(closed);
  });

  it("can be closed while it opens", async () => {
    const source = directory.open();
    const failure = failureOf(search(source, "tea"));
    await source.close();
    expect(await failure).toEqual({ kind: "unreachable", cause: "it is closed" });
  });

  it("ends the writes under way before it closes", async () => {
    const source = directory.open();
    await search(source, "warm up");
    const adding = source.add(ada, [{ text: "Ada drinks green tea" }], never);
    await new Promise(setImmediate);
    await source.close();
    await adding;
    expect(directory.rowsOf("vectors.db")).toHaveLength(1);
  });
});

describe("a search with conditions", () => {
  const kept = [
    { text: "tea 2023", metadata: { year: 2023, topic: "food" } },
    { text: "tea 2024", metadata: { year: 2024, topic: "food" } },
    { text: "tea 2025", metadata: { year: 2025, topic: "trip" } },
    { text: "tea 2026", metadata: { year: 2026, topic: "trip", mood: "glad" } },
    { text: "tea", metadata: {} },
  ];
  const bob = scopeOf("bob");
  const coached = scopeOf("ada", "coach");
  const filled = async () => {
    const source = directory.open({ threshold: 0 });
    await source.add(ada, kept, never);
    for (const scope of [bob, coached, scopeOf("ada", null, "acme")])
      await source.add(
        scope,
        [{ text: `tea of another`, metadata: { year: 2025, topic: "food", mood: "glad" } }],
        never,
      );
    return source;
  };
  const found = async (source: MemorySource, filters: SearchOptions["filters"], of: Partial<SearchOptions> = {}) => {
    const memories = await source.search({ scope: ada, query: "tea", topK: 50, options: { ...of, filters } }, never);
    return memories.map(({ text }) => text.replace(/^tea ?/, "")).sort();
  };

  it("finds what meets all of them, however they are written and nested", async () => {
    const source = await filled();
    const wanted: readonly (readonly [NonNullable<SearchOptions["filters"]>, readonly string[]])[] = [
      [{}, ["", "2023", "2024", "2025", "2026"]],
      [{ topic: "food" }, ["2023", "2024"]],
      [{ year: [2023, 2026] }, ["2023", "2026"]],
      [{ mood: "*", topic: "trip" }, ["2025", "2026"]],
      [{ year: { gte: 2024, lt: 2026 } }, ["2024", "2025"]],
      [{ year: { lt: 2026, gte: 2024 } }, ["2024", "2025"]],
      [{ AND: [{ year: { gte: 2024 } }, { year: { lt: 2026 } }] }, ["2024", "2025"]],
      [{ AND: [{ topic: "food" }, { topic: "trip" }] }, []],
      [{ topic: "food", AND: [{ topic: "trip" }] }, []],
      [{ AND: [{ OR: [{ topic: "food" }, { mood: "glad" }] }, { year: { gt: 2023 } }] }, ["2024", "2026"]],
      [
        { OR: [{ AND: [{ topic: "food" }, { year: 2024 }] }, { NOT: [{ year: { lte: 2025 } }] }] },
        ["", "2024", "2026"],
      ],
      [{ NOT: [{ OR: [{ topic: "food" }, { mood: "glad" }] }] }, ["", "2025"]],
      [{ NOT: { NOT: { topic: "food", year: 2024 } } }, ["2024"]],
      [{ NOT: [{ year: { gte: 2024, lt: 2026 } }] }, ["", "2023", "2026"]],
      [{ AND: [{ OR: [{ topic: "food" }] }, { OR: [{ year: 2023 }, { year: 2026 }] }] }, ["2023"]],
      [{ metadata: { topic: "food", year: { gt: 2023 } } }, ["2024"]],
    ];
    for (const [filters, years] of wanted)
      for (const of of [{}, { isChecked: true }])
        expect([filters, of, await found(source, filters, of)]).toEqual([filters, of, years]);
  });

  it("finds nothing of another user, agent or tenant, whatever they are", async () => {
    const source = await filled();
    const wide: readonly NonNullable<SearchOptions["filters"]>[] = [
      ...[
        { OR: [{}] },
        { OR: [{ topic: "food" }, { topic: { ne: "food" } }] },
        { NOT: [] },
        { NOT: [{ topic: "none" }] },
      ],
      ...[
        { $or: ["", "x"] },
        { $or: [""], $and: [""], $not: ["x"] },
        { AND: [{ $or: [""] }] },
        { AND: [] },
        { mood: "*" },
      ],
    ];
    for (const filters of wide) {
      const texts = await found(source, filters);
      expect([filters, texts.length]).toEqual([filters, kept.length]);
      expect([filters, texts]).not.toEqual([filters, expect.arrayContaining(["of another"])]);
    }
  });
});

describe("the recorded OSS answers", () => {
  it("have the fields that the installed Mem0 gives", async () => {
    mkdirSync(directory.dataDir);
    const { memory, close } = await openEmbeddedStore(directory.dataDir);
    const added = await memory.add("Ada lives in Paris", { userId: "ada", agentId: "planner", infer: false });
    const id = present(added.results[0]).id;
    await memory.update(id, { text: "Ada lives in London" });
    const found = await memory.search("London", { filters: { user_id: "ada" }, topK: 1 });
    close();
    const recorded = JSON.parse(readFileSync(join(import.meta.dirname, "fixtures/oss-search.json"), "utf8"));
    const fields = (items: readonly object[]) => [...new Set(items.flatMap((item) => Object.keys(item)))].toSorted();
    expect(fields(found.results)).toEqual(fields(recorded.results));
  });
});
