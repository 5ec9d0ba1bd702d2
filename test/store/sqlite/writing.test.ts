import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { Statement } from "../../../src/store/database.js";
import { SqliteDatabase } from "../../../src/store/sqlite/database.js";
import { openFile } from "../../../src/store/sqlite/open.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { builtModule, startScript } from "./built-store.js";

const newFolder = temporaryFolders();
const root = newFolder();

/** Threads run what was built. */
const THREADS = new URL(".", builtModule("sqlite/thread"));
const WAYS: readonly (readonly [name: string, threads: URL | null])[] = [
  ["on the thread that reads", null],
  ["on a thread of its own", THREADS],
];

let files = 0;
function opened(threads: URL | null) {
  const connection = openFile(join(root, `${++files}.db`));
  return { database: new SqliteDatabase(connection, () => false, threads), sqlite: connection.sqlite };
}

const user = (name: string, agent = ""): Statement => ({
  text: "insert into scopes (tenant, user_id, agent_id, created_at) values ('default', $1, $2, 1)",
  values: [name, agent],
});
const count = async (database: SqliteDatabase) =>
  Number((await database.read<{ count: number }>("select count(*) as count from scopes", []))[0]?.count);

/** The folder of a writer's thread that ends where it is told to write something that has this word. */
function mortalThreads(word: string): URL {
  const folder = join(root, `mortal-${word}`);
  mkdirSync(folder);
  const code = `import { parentPort } from "node:worker_threads";
     const { on } = parentPort;
     const isLast = (call) => JSON.stringify(call).includes(${JSON.stringify(word)});
     parentPort.on = (event, take) => on.call(parentPort, event, (call) => (isLast(call) ? process.exit(1) : take(call)));
     await import(${JSON.stringify(new URL("thread.js", THREADS).href)});`;
  writeFileSync(join(folder, "thread.js"), code);
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  return pathToFileURL(`${folder}/`);
}

describe.each(WAYS)("transactions that are written %s", (_name, threads) => {
  it("are stored when they resolve, together or not", async () => {
    const { database } = opened(threads);
    await database.write([user("a"), user("a", "coach")]);
    expect(await count(database)).toBe(2);
    await Promise.all(Array.from({ length: 600 }, (_, n) => database.write([user(`b${n}`)])));
    expect(await count(database)).toBe(602);
    await database.close();
  });

  it("do not take others with them where they fail", async () => {
    const { database } = opened(threads);
    const twice = [user("a"), user("b"), user("b")];
    const outcomes = await Promise.allSettled([
      database.write([user("c")]),
      database.write(twice),
      database.write([user("d")]),
      database.write([{ text: "insert into nothing values (1)", values: [] }]),
      database.write([user("c")]),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "rejected",
      "rejected",
    ]);
    expect(await count(database)).toBe(2);
    expect(String((outcomes[1] as PromiseRejectedResult).reason)).toMatch(/UNIQUE constraint failed/);
    await database.close();
  });

  it("are done before it closes, and none are taken after", async () => {
    const { database } = opened(threads);
    const file = join(root, `${files}.db`);
    const writing = database.write([user("a")]);
    await database.close();
    await writing;
    await expect(database.write([user("b")])).rejects.toThrow("closed");
    const sqlite = new Database(file);
    expect(sqlite.prepare("select count(*) from scopes").pluck().get()).toBe(1);
    sqlite.close();
  });

  it("reject where another process holds the lock, and are taken when it is gone", async () => {
    const { database, sqlite } = opened(threads);
    await database.write([user("a")]);
    const other = new Database(sqlite.name);
    other.exec("begin immediate");
    await expect(database.write([user("b")])).rejects.toMatchObject({ name: "StoreUnavailableError", fault: "busy" });
    other.exec("rollback");
    await database.write([user("b")]);
    other.close();
    await database.close();
  });

  it("keep the log short", async () => {
    const { database, sqlite } = opened(threads);
    const long = (n: number): Statement => ({
      text: "update scopes set snapshot = $2 where user_id = $1",
      values: ["a", `${n} `.repeat(20_000)],
    });
    await database.write([user("a")]);
    for (let n = 0; n < 1_200; n++) await database.write([long(n)]);
    const [{ log }] = sqlite.pragma("wal_checkpoint(PASSIVE)") as [{ log: number }];
    const pageBytes = Number(sqlite.pragma("page_size", { simple: true }));
    expect(log * pageBytes).toBeLessThan(64 * 2 ** 20);
    await database.close();
  });
});

describe("a thread that writes", () => {
  it("fails what is under way where it dies, and another one writes what comes then", async () => {
    const { database } = opened(mortalThreads("mortal"));
    await database.write([user("a")]);
    const outcomes = await Promise.allSettled([database.write([user("b")]), database.write([user("mortal")])]);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ reason: { name: "StoreUnavailableError", fault: "failing" } });
    expect(await count(database)).toBe(1);
    await database.write([user("b")]);
    expect(await count(database)).toBe(2);
    await database.close();
  });

  it("that cannot start fails what is to be written, and the process goes on", async () => {
    const { database } = opened(pathToFileURL(join(root, "nothing/")));
    await expect(database.write([user("a")])).rejects.toMatchObject({ fault: "failing" });
    expect(await count(database)).toBe(0);
    await database.close();
  });

  it("keeps no process alive that has nothing else to do", async () => {
    const script = `
      import { openOwned } from ${JSON.stringify(builtModule("sqlite/open"))};
      const { database } = openOwned(process.argv[1]);
      await database.write([]);
      console.log("written");`;
    const { ended } = startScript(script, newFolder());
    expect(await ended).toEqual({ code: 0, signal: null, stderr: "" });
  });

  it("leaves the thread that reads free while it waits for a lock", async () => {
    const { database, sqlite } = opened(THREADS);
    await database.read("select 1", []);
    const other = new Database(sqlite.name);
    other.exec("begin immediate");
    const order: string[] = [];
    const writing = database.write([user("a")]).catch(() => order.push("locked out"));
    await pause(1);
    order.push("others");
    await writing;
    expect(order).toEqual(["others", "locked out"]);
    other.close();
    await database.close();
  });
});

it("a full disk is named", async () => {
  const { database, sqlite } = opened(null);
  sqlite.pragma(`max_page_count = ${Number(sqlite.pragma("page_count", { simple: true })) + 4}`);
  const failure = database.write([user("long ".repeat(20_000))]);
  await expect(failure).rejects.toMatchObject({ name: "StoreUnavailableError", fault: "full" });
  await database.close();
});
