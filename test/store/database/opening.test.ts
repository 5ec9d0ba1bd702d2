import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import { StoreUnavailableError } from "../../../src/store/api/store.js";
import { DatabaseOpenError } from "../../../src/store/open-error.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { InlineJournal } from "../../../src/store/sqlite/sqlite-journal.js";
import { allOf, composeInto, id, scopeOf } from "../api/stored-compose.js";
import { checkDatabase } from "../checked-database.js";

const directory = mkdtempSync(join(tmpdir(), "memprefix-opening-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** In a thread: takes a new file's write lock, says so, and lets go after a while. */
const HOLDS_A_NEW_FILE = `
  const { parentPort, workerData } = require("node:worker_threads");
  const sqlite = require("better-sqlite3")(workerData);
  sqlite.exec("begin immediate");
  parentPort.postMessage("held");
  setTimeout(() => { sqlite.exec("rollback"); sqlite.close(); }, 300);
`;

const PAGE = 2_048;
let files = 0;
const newFile = () => join(directory, `file-${++files}.db`);
const openStore = (file: string) => new JournalStore(new InlineJournal(openDatabase(file)));

/** A database with the requests of some users; closed, so that it is all in one file. */
async function filled(users = 3): Promise<string> {
  const file = newFile();
  const store = openStore(file);
  for (let user = 0; user < users; user++) {
    for (let n = 0; n < 8; n++) {
      const memories = { [`m${n}`]: `Fact ${n} of user ${user}. ${"It is long. ".repeat(40)}` };
      await composeInto(store, scopeOf(`user-${user}`), { requestId: `r${n}`, question: "Well?", memories });
    }
  }
  await store.close();
  return file;
}

/** As a killed process leaves it: with a log beside it. */
async function killed(): Promise<string> {
  const open = newFile();
  const store = openStore(open);
  await composeInto(store, scopeOf("ana"), { requestId: "r1", question: "Well?", memories: { m1: "Ana likes tea." } });
  const file = newFile();
  for (const end of ["", "-wal"]) copyFileSync(`${open}${end}`, `${file}${end}`);
  await store.close();
  return file;
}

function overwrite(file: string, at: number, bytes: Buffer): void {
  const whole = readFileSync(file);
  bytes.copy(whole, at);
  writeFileSync(file, whole);
}

/** SQLite makes the log's file, empty, also where it only reads. */
const bytesOf = (file: string) =>
  [file, `${file}-wal`].map((path) => (existsSync(path) ? readFileSync(path) : Buffer.alloc(0)).toString("base64"));

function refusal(file: string): string {
  try {
    openDatabase(file).sqlite.close();
    return "it was opened";
  } catch (error) {
    if (error instanceof DatabaseOpenError) return error.reason;
    throw error;
  }
}

describe("a file that is opened", () => {
  it("is in WAL mode, has small pages where it is new, and holds what was committed when it is opened again", async () => {
    const file = newFile();
    const first = openStore(file);
    await composeInto(first, scopeOf("ana"), { requestId: "r", question: "Well?", memories: { m: "Ana likes tea." } });
    const stored = await allOf(first, scopeOf("ana"));
    await first.close();
    const { sqlite } = openDatabase(file);
    expect(["journal_mode", "page_size"].map((name) => sqlite.pragma(name, { simple: true }))).toEqual(["wal", PAGE]);
    sqlite.close();
    const second = openStore(file);
    expect(await allOf(second, scopeOf("ana"))).toEqual(stored);
    await second.close();
  });

  it("keeps the pages that it has", () => {
    const file = newFile();
    const earlier = new Database(file);
    earlier.pragma("page_size = 4096");
    earlier.exec("vacuum");
    earlier.close();
    const { sqlite } = openDatabase(file);
    expect(sqlite.pragma("page_size", { simple: true })).toBe(4_096);
    sqlite.close();
  });
});

describe("a file that cannot be opened", () => {
  const cases: readonly (readonly [string, () => string | Promise<string>, RegExp])[] = [
    [
      "has garbage for a header",
      async () => {
        const file = await filled();
        overwrite(file, 0, Buffer.alloc(100, 0x5a));
        return file;
      },
      /^it is not a database, or its beginning is damaged$/,
    ],
    [
      "was cut short",
      async () => {
        const file = await filled();
        truncateSync(file, 3 * PAGE);
        return file;
      },
      /^it is damaged or cut short; restore a backup$/,
    ],
    [
      "was written by a newer version, and then its process was killed",
      async () => {
        const file = await killed();
        const sqlite = new Database(file);
        sqlite.pragma("wal_autocheckpoint = 0");
        sqlite.exec("insert into __drizzle_migrations (hash, created_at) values ('later', 9999999999999)");
        const copy = newFile();
        for (const end of ["", "-wal"]) copyFileSync(`${file}${end}`, `${copy}${end}`);
        sqlite.close();
        return copy;
      },
      /^it was written by a newer version of memprefix$/,
    ],
    [
      "was written by a development version",
      async () => {
        const file = await killed();
        const sqlite = new Database(file);
        sqlite.exec("update __drizzle_migrations set created_at = 1790000000000");
        sqlite.close();
        return file;
      },
      /^a development version from before 0\.1\.0 wrote it, which this version does not read; use an empty data directory$/,
    ],
    [
      "is another program's database",
      () => {
        const file = newFile();
        const sqlite = new Database(file);
        sqlite.exec("create table users (name text); insert into users values ('somebody')");
        sqlite.close();
        return file;
      },
      /^it is the database of another program$/,
    ],
  ];

  it.each(cases)("because it %s is refused in plain words, and no byte of it changes", async (_name, make, reason) => {
    const file = await make();
    const before = bytesOf(file);
    expect(refusal(file)).toMatch(reason);
    expect(bytesOf(file)).toEqual(before);
  });

  it("because it is a directory, or lies below a file, is refused", () => {
    const taken = newFile();
    mkdirSync(taken);
    expect(refusal(taken)).toMatch(/^its files could not be opened, read or written \(SQLITE_/);
    const file = newFile();
    writeFileSync(file, "a file");
    expect(refusal(join(file, "memprefix.db"))).toMatch(/ENOTDIR|EEXIST/);
    expect(readFileSync(file, "utf8")).toBe("a file");
  });
});

describe("a file that opens though it is damaged", () => {
  it("by a page in its middle is named by a check, and says so where that page is needed; other users go on", async () => {
    const file = await filled(6);
    const sqlite = new Database(file, { readonly: true });
    // A page that only a few records stand on.
    const pages = sqlite
      .prepare("select distinct pageno from dbstat where name = 'journal' and pagetype = 'leaf' order by pageno")
      .pluck()
      .all() as number[];
    sqlite.close();
    const [, second] = pages;
    expect(second).toBeDefined();
    overwrite(file, ((second ?? 0) - 1) * PAGE, Buffer.alloc(PAGE, 0xa5));
    const { findings } = await checkDatabase(file);
    expect(findings.join("\n")).toContain("malformed");
    const store = openStore(file);
    const loading = Array.from({ length: 6 }, async (_, user) => {
      try {
        await store.loadScope(scopeOf(`user-${user}`));
        return "loaded";
      } catch (error) {
        return error instanceof StoreUnavailableError ? error.fault : String(error);
      }
    });
    const outcomes = await Promise.all(loading);
    expect(new Set(outcomes)).toEqual(new Set(["loaded", "damaged"]));
    const damaged = outcomes.flatMap((outcome, user) =>
      outcome === "damaged" ? [`user "default" "user-${user}": database disk image is malformed`] : [],
    );
    expect(findings.filter((finding) => finding.startsWith("user "))).toEqual(damaged);
    await store.close();
  });

  it("by a log that somebody deleted is as it was when the log was last written back", async () => {
    const file = await filled(1);
    const store = openStore(file);
    await composeInto(store, scopeOf("user-0"), { requestId: "late", question: "Well?", memories: { m9: "Late." } });
    const copy = newFile();
    copyFileSync(file, copy);
    await store.close();
    expect(await checkDatabase(copy)).toMatchObject({ findings: [], requests: 8 });
    const reopened = openStore(copy);
    expect(await reopened.findRequest(scopeOf("user-0"), id("late"))).toBeNull();
    await composeInto(reopened, scopeOf("user-0"), { requestId: "late", question: "Well?", memories: { m9: "Late." } });
    await reopened.close();
    expect(await checkDatabase(copy)).toMatchObject({ findings: [], requests: 9 });
  });
});

describe("a file that another process holds locked", () => {
  it("is waited for where it is new, and the other one is about to make it: SQLite itself would fail at once", async () => {
    const file = newFile();
    const other = new Worker(HOLDS_A_NEW_FILE, { eval: true, workerData: file });
    const ended = once(other, "exit");
    await once(other, "message");
    const store = openStore(file);
    await composeInto(store, scopeOf("ana"), {
      requestId: "r1",
      question: "Well?",
      memories: { m1: "Ana likes tea." },
    });
    await store.close();
    await ended;
  });

  it("fails a commit at once and in a word, and takes it when the lock is gone", async () => {
    const file = await filled(1);
    const store = openStore(file);
    const other = new Database(file);
    other.exec("begin immediate");
    const asked = { requestId: "late", question: "Well?", memories: { m9: "Late." } };
    const compose = () => composeInto(store, scopeOf("user-0"), asked);
    await expect(compose()).rejects.toThrow(StoreUnavailableError);
    await expect(compose()).rejects.toThrow("another process holds the database locked");
    other.exec("rollback");
    other.close();
    await compose();
    await store.close();
    expect(await checkDatabase(file)).toMatchObject({ findings: [], requests: 9 });
  });

  it("keeps erased text in its log only as long as another process reads there", async () => {
    const file = await filled(1);
    const store = openStore(file);
    const secret = "Ana hides the key";
    await composeInto(store, scopeOf("ana"), { requestId: "r", question: "Well?", memories: { m: secret } });
    const reader = new Database(file, { readonly: true });
    reader.exec("begin");
    reader.prepare("select count(*) from scopes").get();
    await store.deleteUser("default", scopeOf("ana").userId, false);
    const log = () => readFileSync(`${file}-wal`, "latin1") + readFileSync(file, "latin1");
    expect(log()).toContain(secret);
    reader.exec("commit");
    await expect.poll(log).not.toContain(secret);
    reader.close();
    await store.close();
  });
});
