import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { DATABASE_FILE, openBeside, openOwned } from "../../../src/store/sqlite/open.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { builtModule, startScript } from "./built-store.js";

const newFolder = temporaryFolders();
const directory = newFolder();
const file = join(directory, DATABASE_FILE);
const isInFiles = (text: string) => [file, `${file}-wal`].some((path) => readFileSync(path).includes(text));

/** Deletes a text so that it stays in the file's free space, as a page that is rebalanced may leave it. */
function leaveInFreeSpace(text: string): void {
  const sqlite = new Database(file);
  sqlite.pragma("secure_delete = OFF");
  sqlite.exec("create table if not exists notes (text)");
  sqlite.prepare("insert into notes values (?)").run(text);
  sqlite.exec("delete from notes");
  sqlite.close();
}

it("an erasure that a reader kept from its end is finished with the next one, by the owner alone", async () => {
  const { database } = openOwned(directory);
  leaveInFreeSpace("the blue safe opens with 4821");
  const reader = new Database(file, { readonly: true });
  reader.exec("begin");
  reader.prepare("select count(*) from scopes").get();
  expect(await database.erase(["the blue safe opens with 4821"])).toBe("pending");
  reader.close();
  await openBeside(directory).close();
  expect(isInFiles("the blue safe")).toBe(true);
  leaveInFreeSpace("the red one opens with 7");
  expect(await database.erase(["the red one opens with 7"])).toBe("erased");
  expect([isInFiles("the blue safe"), isInFiles("the red one")]).toEqual([false, false]);
  await database.close();
});

/** Opens a directory, erases, and stays. */
const OWNER = `
  import { openOwned } from ${JSON.stringify(builtModule("sqlite/open"))};
  const { database } = openOwned(process.argv[1]);
  console.log(await database.erase(["nothing that is there"]));
  process.stdin.resume();
`;

const hasLocks = existsSync("/proc/locks");
it.skipIf(!hasLocks)(
  `leaves the owner's locks on the file${hasLocks ? "" : " (skipped: no /proc/locks)"}`,
  async () => {
    const own = newFolder();
    const { child, line, ended } = startScript(OWNER, own);
    expect(await line()).toBe("erased");
    const { ino } = statSync(join(own, DATABASE_FILE));
    const locks = readFileSync("/proc/locks", "utf8").split("\n");
    expect(locks.filter((lock) => lock.includes(` ${child.pid} `) && lock.includes(`:${ino} `))).toHaveLength(1);
    child.kill("SIGKILL");
    await ended;
  },
);
