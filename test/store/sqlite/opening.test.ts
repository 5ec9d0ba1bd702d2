import { once } from "node:events";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { fileDirectory } from "../../../src/cli/data-directory.js";
import { quickCheck } from "../../../src/cli/stored-users.js";
import { DatabaseOpenError } from "../../../src/store/open-error.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { DATABASE_FILE, openOwned } from "../../../src/store/sqlite/open.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { checkDatabase } from "../checked-database.js";
import { ComposedUsers, scopeOf, storedOf } from "../composed-users.js";

/** In a thread: takes a new file's write lock, says so, and lets go after a while. */
const HOLDS_A_NEW_FILE = `
  const { parentPort, workerData } = require("node:worker_threads");
  const sqlite = require("better-sqlite3")(workerData);
  sqlite.exec("begin immediate");
  parentPort.postMessage("held");
  setTimeout(() => { sqlite.exec("rollback"); sqlite.close(); }, 300);
`;

const newDirectory = temporaryFolders();
const fileIn = (directory: string) => join(directory, DATABASE_FILE);

/** As the service opens its data directory. */
const openService = (directory: string) => openOwned(fileDirectory({ dataDir: directory }));

function openUsers(directory: string): ComposedUsers {
  return new ComposedUsers(storeIn(openService(directory).database));
}

/** A directory with the requests of some users; closed, so that all is in one file. */
async function filled(users = 3): Promise<string> {
  const directory = newDirectory();
  const composed = openUsers(directory);
  for (let user = 0; user < users; user++)
    for (let n = 0; n < 8; n++) {
      const memories = { [`m${n}`]: `Fact ${n} of user ${user}. ${"It is long. ".repeat(40)}` };
      await composed.compose(scopeOf(`user-${user}`), { requestId: `r${n}`, question: "Well?", memories });
    }
  await composed.store.close();
  return directory;
}

/** As a killed process leaves it: with a log beside it. */
async function killed(): Promise<string> {
  const open = newDirectory();
  const users = openUsers(open);
  await users.compose(scopeOf("ana"), { requestId: "r1", question: "Well?", memories: { m1: "Ana likes tea." } });
  const directory = newDirectory();
  for (const end of ["", "-wal"]) copyFileSync(fileIn(open) + end, fileIn(directory) + end);
  await users.store.close();
  return directory;
}

function pageBytesOf(file: string): number {
  return readFileSync(file).readUInt16BE(16);
}

function overwrite(file: string, at: number, bytes: Buffer): void {
  const whole = readFileSync(file);
  bytes.copy(whole, at);
  writeFileSync(file, whole);
}

/** SQLite makes the log's file, empty, also where it only reads. */
const bytesOf = (directory: string) =>
  ["", "-wal"]
    .map((end) => fileIn(directory) + end)
    .map((path) => (existsSync(path) ? readFileSync(path) : Buffer.alloc(0)).toString("base64"));

function refusal(directory: string): string {
  try {
    void openService(directory).database.close();
    return "it was opened";
  } catch (error) {
    if (error instanceof DatabaseOpenError) return error.reason;
    throw error;
  }
}

describe("a data directory", () => {
  it("is made where it is missing, and holds what was committed when it is opened again", async () => {
    const directory = join(newDirectory(), "a", "b");
    const first = openUsers(directory);
    await first.compose(scopeOf("ana"), { requestId: "r", question: "Well?", memories: { m: "Ana likes tea." } });
    const { stored } = await storedOf(first.store, scopeOf("ana"));
    await first.store.close();
    const second = openUsers(directory);
    expect((await storedOf(second.store, scopeOf("ana"))).stored).toEqual(stored);
    await second.store.close();
    expect(await checkDatabase(fileIn(directory))).toEqual({ users: 1, requests: 1, findings: [] });
  });

  it("is in WAL mode, with the pages that it has, or small ones where it is new", async () => {
    const [own, earlier] = [newDirectory(), newDirectory()];
    const large = new Database(fileIn(earlier));
    large.pragma("page_size = 8192");
    large.exec("vacuum");
    large.close();
    for (const [directory, bytes] of [
      [own, 2_048],
      [earlier, 8_192],
    ] as const) {
      await openOwned(directory).database.close();
      const sqlite = new Database(fileIn(directory), { readonly: true });
      const pragmas = ["journal_mode", "page_size"].map((name) => sqlite.pragma(name, { simple: true }));
      expect(pragmas).toEqual(["wal", bytes]);
      sqlite.close();
    }
  });
});

describe("a data directory that cannot be opened", () => {
  const cases: readonly (readonly [string, () => string | Promise<string>, RegExp])[] = [
    [
      "has garbage for a header",
      async () => {
        const directory = await filled();
        overwrite(fileIn(directory), 0, Buffer.alloc(100, 0x5a));
        return directory;
      },
      /^it is not a database, or its beginning is damaged$/,
    ],
    [
      "was cut short",
      async () => {
        const directory = await filled();
        truncateSync(fileIn(directory), 3 * pageBytesOf(fileIn(directory)));
        return directory;
      },
      /^it is damaged or cut short; restore a backup$/,
    ],
    [
      "was written by a newer version, whose process was killed",
      async () => {
        const directory = await killed();
        const sqlite = new Database(fileIn(directory));
        sqlite.pragma("wal_autocheckpoint = 0");
        sqlite.exec("insert into __drizzle_migrations (hash, created_at) values ('later', 9999999999999)");
        const copy = newDirectory();
        for (const end of ["", "-wal"]) copyFileSync(fileIn(directory) + end, fileIn(copy) + end);
        sqlite.close();
        return copy;
      },
      /^another version of memprefix wrote it; use that version, or an empty data directory$/,
    ],
    [
      "was written by a development version",
      async () => {
        const directory = await killed();
        const sqlite = new Database(fileIn(directory));
        sqlite.exec("update __drizzle_migrations set created_at = 1790000000000");
        sqlite.close();
        return directory;
      },
      /^another version of memprefix wrote it; use that version, or an empty data directory$/,
    ],
    [
      "has another program's database",
      () => {
        const directory = newDirectory();
        const sqlite = new Database(fileIn(directory));
        sqlite.exec("create table users (name text); insert into users values ('somebody')");
        sqlite.close();
        return directory;
      },
      /^it is the database of another program$/,
    ],
  ];

  it.each(cases)("because it %s is refused in plain words, and no byte changes", async (_name, make, reason) => {
    const directory = await make();
    const before = bytesOf(directory);
    expect(refusal(directory)).toMatch(reason);
    expect(bytesOf(directory)).toEqual(before);
    // Nobody owns it now.
    expect(refusal(directory)).toMatch(reason);
  });

  it("because its database is a directory, or it is a file, or below one, is refused", () => {
    const directory = newDirectory();
    mkdirSync(fileIn(directory));
    expect(refusal(directory)).toMatch(/^its files could not be opened, read or written \(SQLITE_/);
    const file = join(newDirectory(), "file");
    writeFileSync(file, "a file");
    for (const path of [file, join(file, "below")]) expect(refusal(path)).toMatch(/ENOTDIR|EEXIST/);
    expect(readFileSync(file, "utf8")).toBe("a file");
  });

  const hasProc = existsSync("/proc/self/status");
  it.skipIf(!hasProc)(`because its file system takes none is refused${hasProc ? "" : " (skipped: no /proc)"}`, () => {
    expect(refusal("/proc/memprefix/data")).toBe("ENOENT: no such file or directory, mkdir '/proc/memprefix'");
  });

  const isRoot = process.getuid?.() === 0;
  it.skipIf(isRoot)(
    `because it is read-only is refused${isRoot ? " (skipped: root may write everywhere)" : ""}`,
    async () => {
      const directory = await filled(1);
      chmodSync(directory, 0o555);
      expect(refusal(directory)).toMatch(/cannot be written|could not be opened/);
      chmodSync(directory, 0o755);
      expect(refusal(directory)).toBe("it was opened");
    },
  );
});

describe("a database that opens though it is damaged", () => {
  it("by a page in its middle is named by a check, and says so where that page is needed; other users go on", async () => {
    const directory = await filled(6);
    const file = fileIn(directory);
    const sqlite = new Database(file, { readonly: true });
    const pages = sqlite
      .prepare("select distinct pageno from dbstat where name = 'changes' and pagetype = 'leaf'")
      .pluck();
    const [, page] = pages.all() as number[];
    sqlite.close();
    const bytes = pageBytesOf(file);
    overwrite(file, ((page ?? 0) - 1) * bytes, Buffer.alloc(bytes, 0xa5));
    expect(quickCheck(file).length).toBeGreaterThan(0);
    const { findings } = await checkDatabase(file);
    const users = openUsers(directory);
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, async (_, user) =>
        storedOf(users.store, scopeOf(`user-${user}`)).then(
          () => "loaded",
          (error) => error.fault ?? String(error),
        ),
      ),
    );
    expect(new Set(outcomes)).toEqual(new Set(["loaded", "damaged"]));
    for (const [user, outcome] of outcomes.entries())
      if (outcome === "damaged") expect(findings.join("\n")).toContain(`user "default" "user-${user}": `);
    expect(findings.filter((line) => line.startsWith("user "))).toHaveLength(
      outcomes.filter((one) => one === "damaged").length,
    );
    await users.store.close();
  });

  it("by changes that are missing, or JSON that is none, says so and quotes nothing", async () => {
    const directory = await filled(2);
    const sqlite = new Database(fileIn(directory));
    sqlite.exec("delete from changes where scope_id = 1 and version = 3");
    sqlite.exec("update changes set changes = substr(changes, 1, 90) where version = 3");
    sqlite.close();
    const { findings } = await checkDatabase(fileIn(directory));
    expect(findings).toEqual([
      'user "default" "user-0": changes of a scope are missing',
      'user "default" "user-1": a scope\'s changes is not what was written',
    ]);
  });

  it("by a log that somebody deleted is as it was when the log was last written back", async () => {
    const directory = await filled(1);
    const users = openUsers(directory);
    const late = { requestId: "late", question: "Well?", memories: { m9: "Late." } };
    await users.compose(scopeOf("user-0"), late);
    const copy = newDirectory();
    copyFileSync(fileIn(directory), fileIn(copy));
    await users.store.close();
    const again = openUsers(copy);
    await again.compose(scopeOf("user-0"), late);
    await again.store.close();
    expect(await checkDatabase(fileIn(copy))).toMatchObject({ findings: [], requests: 9 });
  });
});

describe("a database that another process holds locked", () => {
  it("is waited for where it is new, and the other one is about to make it", async () => {
    const directory = newDirectory();
    const other = new Worker(HOLDS_A_NEW_FILE, { eval: true, workerData: fileIn(directory) });
    const ended = once(other, "exit");
    await once(other, "message");
    await openUsers(directory).store.close();
    await ended;
  });
});
