import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { beforeEach, describe, expect, it } from "vitest";
import { storeIn } from "../../../src/store/sql-store.js";
import { DATABASE_FILE, openOwned } from "../../../src/store/sqlite/open.js";
import { IS_WHOLE } from "../../run-length.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { ComposedUsers, scopeOf } from "../composed-users.js";

const newDirectory = temporaryFolders();

const ana = scopeOf("ana");
const SECRET = "Ana hides the key under the third flower pot, behind the garden shed";

function randomly(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * most);
  };
}

describe("text that was deleted", () => {
  let directory: string;
  let users: ComposedUsers;
  beforeEach(() => {
    directory = newDirectory();
    users = new ComposedUsers(storeIn(openOwned(directory).database));
  });
  const bytes = () => readdirSync(directory).map((name) => readFileSync(join(directory, name)));
  const inFiles = (text: string) => bytes().filter((file) => file.includes(text)).length;
  const pieces = (text: string, length = 32) => {
    const files = bytes();
    const all = Array.from({ length: Math.max(1, text.length - length + 1) }, (_, at) => text.slice(at, at + length));
    return all.filter((piece) => files.some((file) => file.includes(piece)));
  };

  it("stays while another connection reads an older state, is said to, and goes at the next opening", async () => {
    await users.compose(ana, { requestId: "r", question: "Well?", memories: { m: SECRET } });
    const reader = new Database(join(directory, DATABASE_FILE), { readonly: true });
    reader.exec("begin");
    reader.prepare("select count(*) from scopes").get();
    expect((await users.forget(ana, "m")).files).toBe("pending");
    expect(inFiles(SECRET)).toBeGreaterThan(0);
    reader.exec("commit");
    await users.store.close();
    reader.close();
    const { database } = openOwned(directory);
    expect([inFiles(SECRET), pieces(SECRET)]).toEqual([0, []]);
    await database.close();
  });

  it("is in no file, where a free page has a copy of it", async () => {
    await users.compose(ana, { requestId: "r", question: "Well?", memories: { m: SECRET } });
    // As SQLite leaves one when it moves rows, whatever `secure_delete` says.
    const other = new Database(join(directory, DATABASE_FILE));
    other.pragma("secure_delete = OFF");
    other.exec("create table moved (text)");
    other.prepare("insert into moved values (?)").run(SECRET);
    other.exec("drop table moved");
    other.close();
    expect((await users.forget(ana, "m")).files).toBe("erased");
    expect([inFiles(SECRET), pieces(SECRET)]).toEqual([0, []]);
  });

  it("is in no file, whoever and whatever is deleted, as rows move", async () => {
    const pick = randomly(7);
    const known = new Map<string, Map<string, string>>();
    const left: string[] = [];
    let added = 0;
    for (let step = 0; step < (IS_WHOLE ? 1_500 : 400); step++) {
      const user = `user-${pick(30)}`;
      const own = known.get(user) ?? new Map<string, string>();
      known.set(user, own);
      if (step % 10 === 9 && own.size > 0) {
        const isUser = step % 20 === 19;
        const gone = isUser ? [...own.keys()] : [...own.keys()].slice(0, 1);
        if (isUser) await users.deleteUser(scopeOf(user));
        else for (const memory of gone) await users.forget(scopeOf(user), memory);
        const files = bytes();
        for (const memory of gone) {
          const mark = own.get(memory) ?? "none";
          if (files.some((file) => file.includes(mark))) left.push(`${mark} at ${step}`);
          own.delete(memory);
        }
        continue;
      }
      const memories = Object.fromEntries(
        Array.from({ length: 3 }, () => {
          const mark = `mark ${added++}x of ${user}`;
          own.set(`m-${added}`, mark);
          return [`m-${added}`, `${mark} ${"and more words ".repeat(1 + pick(60))}`];
        }),
      );
      await users.compose(scopeOf(user), { requestId: `r-${step}`, question: "Well?", memories });
    }
    expect(left).toEqual([]);
    await users.store.close();
  });
});
