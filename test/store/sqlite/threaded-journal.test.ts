import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import Database from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { InlineJournal, ThreadedJournal } from "../../../src/store/sqlite/sqlite-journal.js";
import { composed, scopeNamed, unitOf } from "../journal/journal-database.suite.js";

const directory = mkdtempSync(join(tmpdir(), "memprefix-threads-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const BUILT = resolve(import.meta.dirname, "../../../dist/store");
/** A thread runs what was built. */
const THREAD = pathToFileURL(join(BUILT, "sqlite/journal-thread.js"));

let files = 0;
const newFile = () => join(directory, `journal-${++files}.db`);
const threaded = (file: string, code = THREAD) => new ThreadedJournal(openDatabase(file), code);
const ana = scopeNamed("ana");

/** The thread, which also ends where it is told to do something for a user of this name. */
function mortalThread(user: string): URL {
  const file = join(directory, "mortal-thread.mjs");
  writeFileSync(
    file,
    `import { parentPort } from "node:worker_threads";
     const { on } = parentPort;
     const isLast = (call) => JSON.stringify(call).includes(${JSON.stringify(user)});
     parentPort.on = (event, take) => on.call(parentPort, event, (call) => (isLast(call) ? process.exit(1) : take(call)));
     await import(${JSON.stringify(THREAD.href)});`,
  );
  return pathToFileURL(file);
}

/** Holds the file's write lock. */
function lock(file: string): () => void {
  const sqlite = new Database(file);
  sqlite.exec("begin immediate");
  return () => sqlite.close();
}

describe("a thread of a journal that dies", () => {
  it("fails what was under way, and what comes then is written by another", async () => {
    const file = newFile();
    const journal = threaded(file, mortalThread("mortal"));
    const { version } = await journal.write(unitOf(ana, null, [composed(1)]));
    const outcomes = await Promise.allSettled([
      journal.write(unitOf(ana, version, [composed(2)])),
      journal.write(unitOf(scopeNamed("mortal"), null, [composed(1)])),
    ]);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ reason: { name: "StoreUnavailableError", fault: "failing" } });
    expect(await journal.versionOf(ana)).toEqual(version);
    expect((await journal.write(unitOf(ana, version, [composed(2)]))).version?.commits).toBe(2);
    await journal.close();
  });

  it("at its start fails what is to be written, and the process goes on", async () => {
    const journal = threaded(newFile(), pathToFileURL(join(directory, "missing-thread.js")));
    await expect(journal.write(unitOf(ana, null, [composed(1)]))).rejects.toMatchObject({ fault: "failing" });
    await journal.close();
  });
});

describe("the thread of a journal", () => {
  it("keeps no process alive that has nothing else to do", () => {
    const script = `
      import { openDatabase } from ${JSON.stringify(pathToFileURL(join(BUILT, "database/open-database.js")).href)};
      import { ThreadedJournal } from ${JSON.stringify(pathToFileURL(join(BUILT, "sqlite/sqlite-journal.js")).href)};
      const journal = new ThreadedJournal(openDatabase(${JSON.stringify(newFile())}));
      await journal.ping();
      await journal.emptyLog();
      process.stdout.write("done");`;
    const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script]);
    expect([status, String(stdout), String(stderr)]).toEqual([0, "done", ""]);
  });

  it("writes what was handed over before it ends, and takes nothing after", async () => {
    const file = newFile();
    const journal = threaded(file);
    const writing = journal.write(unitOf(ana, null, [composed(1)]));
    await journal.close();
    expect((await writing).version?.commits).toBe(1);
    await expect(journal.emptyLog()).rejects.toThrow("closed");
    const again = new InlineJournal(openDatabase(file));
    expect(await again.versionOf(ana)).toMatchObject({ commits: 1 });
    await again.close();
  });

  it("waits for another process's lock, while this thread goes on", async () => {
    const file = newFile();
    const journal = threaded(file);
    await journal.ping();
    const unlock = lock(file);
    let isStored = false;
    const writing = journal.write(unitOf(ana, null, [composed(1)])).then(() => {
      isStored = true;
    });
    await pause(50);
    expect(isStored).toBe(false);
    unlock();
    await writing;
    expect(await journal.versionOf(ana)).toMatchObject({ commits: 1 });
    await journal.close();
  });

  it("gives up after a while, and nothing is written", async () => {
    const file = newFile();
    const [journal, inline] = [threaded(file), new InlineJournal(openDatabase(file))];
    await journal.ping();
    const unlock = lock(file);
    const outcomes = await Promise.allSettled(
      [journal, inline].map((handle) => handle.write(unitOf(ana, null, [composed(1)]))),
    );
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { fault: "busy" } });
    expect(await journal.versionOf(ana)).toBeNull();
    unlock();
    await journal.write(unitOf(ana, null, [composed(1)]));
    await Promise.all([journal.close(), inline.close()]);
  });
});

describe("a journal on a disk that does not play along", () => {
  it("names a full disk, keeps nothing of what failed, and goes on where there is room", async () => {
    const database = openDatabase(newFile());
    const journal = new InlineJournal(database);
    const { version } = await journal.write(unitOf(ana, null, [composed(1)]));
    database.sqlite.pragma(`max_page_count = ${Number(database.sqlite.pragma("page_count", { simple: true })) + 4}`);
    const large = unitOf(ana, version, [composed(2, { said: JSON.stringify("long ".repeat(10_000)) })]);
    await expect(journal.write(large)).rejects.toMatchObject({ name: "StoreUnavailableError", fault: "full" });
    expect(await journal.load(ana)).toMatchObject({ version });
    expect((await journal.write(unitOf(ana, version, [composed(2)]))).version?.commits).toBe(2);
    database.sqlite.pragma("max_page_count = 1000000");
    expect((await journal.write({ ...large, version: await journal.versionOf(ana) })).version?.commits).toBe(3);
    await journal.close();
  });

  it("names a database that cannot be written, and can be read", async () => {
    const database = openDatabase(newFile());
    const journal = new InlineJournal(database);
    const { version } = await journal.write(unitOf(ana, null, [composed(1)]));
    database.sqlite.pragma("query_only = ON");
    await expect(journal.write(unitOf(ana, version, [composed(2)]))).rejects.toMatchObject({ fault: "read-only" });
    expect(await journal.versionOf(ana)).toEqual(version);
    await journal.close();
  });
});

describe("text that a unit erases", () => {
  const SECRET = "Ana hides the key under the third flower pot, behind the garden shed";
  const said = JSON.stringify([1, SECRET]);
  const bytesOf = (file: string) => readFileSync(file, "latin1") + readFileSync(`${file}-wal`, "latin1");

  it("is out of the files once erased resolves: rewritten and removed", async () => {
    const file = newFile();
    const journal = threaded(file);
    const head = { digest: "digest" as never, messages: JSON.stringify([SECRET]) };
    const { version } = await journal.write(
      unitOf(ana, null, [composed(1, { said }), composed(2, { said }), composed(3)], {
        changes: [
          { kind: "snapshot", data: said },
          { kind: "keep-shared", rows: [head] },
        ],
      }),
    );
    expect(bytesOf(file)).toContain(SECRET);
    const [first, second] = await journal.list(version?.scopeId ?? 0, { most: 10 });
    await journal.write(
      unitOf(ana, version, [composed(4, { kind: "forgotten", turns: 0 })], {
        changes: [
          { kind: "rewrite", seq: first?.seq ?? 0, to: { said: "[1,null]" } },
          { kind: "remove", seqs: [second?.seq ?? 0] },
          { kind: "snapshot", data: "[1]" },
          { kind: "remove-shared", digests: [head.digest] },
        ],
        erased: [SECRET],
      }),
    );
    await journal.erased();
    for (const piece of [SECRET, SECRET.slice(20, 44)]) expect(bytesOf(file)).not.toContain(piece);
    expect((await journal.read([first?.seq ?? 0])).map((record) => record.said)).toEqual(["[1,null]"]);
    await journal.close();
  });

  it("goes with a user, though nobody named it", async () => {
    const file = newFile();
    const journal = threaded(file);
    for (let n = 0; n < 40; n++) {
      const scope = scopeNamed(n % 2 === 0 ? "ana" : "bob");
      const { version } = await journal.load(scope);
      const text = n % 2 === 0 ? `${SECRET} ${"more ".repeat(n)}` : "Bob drinks tea. ".repeat(n);
      await journal.write(unitOf(scope, version, [composed(n, { said: JSON.stringify(text) })]));
    }
    await journal.deleteUser("default", "ana" as UserId, false);
    await journal.erased();
    expect(bytesOf(file)).not.toContain(SECRET.slice(0, 24));
    expect(await journal.versionOf(scopeNamed("bob"))).toMatchObject({ commits: 20 });
    await journal.close();
  });

  it("is erased by the next process, where one was killed in between", async () => {
    const file = newFile();
    const before = new InlineJournal(openDatabase(file));
    const { version } = await before.write(unitOf(ana, null, [composed(1, { said }), composed(2)]));
    await before.close();
    // What a killed process leaves: the row is gone, its text is in the file, and the file counts an erasure.
    const sqlite = new Database(file);
    sqlite.pragma("secure_delete = OFF");
    sqlite.exec("update journal set said = null, sum = 0 where n = 1");
    sqlite.pragma("user_version = 1");
    sqlite.close();
    expect(readFileSync(file, "latin1")).toContain(SECRET.slice(0, 24));
    const journal = threaded(file);
    const pending = () => {
      const reading = new Database(file, { readonly: true });
      const count = Number(reading.pragma("user_version", { simple: true }));
      reading.close();
      return count;
    };
    while (pending() > 0) await pause(50);
    expect(bytesOf(file)).not.toContain(SECRET.slice(0, 24));
    expect(await journal.versionOf(ana)).toEqual(version);
    await journal.close();
  });
});
