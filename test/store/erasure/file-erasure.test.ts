import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { ForgottenPieces } from "../../../src/store/erasure/forgotten-pieces.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { journalIn } from "../../../src/store/sqlite/sqlite-journal.js";
import { IS_WHOLE } from "../../run-length.js";
import { composeInto, scopeOf } from "../api/stored-compose.js";

const SECRET = "Ana hides the key under the third flower pot, behind the garden shed";
const PAGE = 2_048;

let directory: string;
let file: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "memprefix-erasure-"));
  file = join(directory, "memprefix.db");
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(directory, { recursive: true });
});

const open = () => new JournalStore(journalIn(openDatabase(file)));
const ask = (store: JournalStore, user: string, text: string) =>
  composeInto(store, scopeOf(user), { requestId: `r-${user}`, question: "Well?", memories: { m: text } });
const inFiles = (text: string) => readFileSync(file).includes(text) || readFileSync(`${file}-wal`).includes(text);
const rewritten = () => vi.spyOn(Database.prototype, "exec");
const rewrites = (spy: ReturnType<typeof rewritten>) => spy.mock.calls.filter(([sql]) => sql === "VACUUM").length;

function inHeader(pragma: string): unknown {
  const database = new Database(file, { readonly: true });
  try {
    return database.pragma(pragma, { simple: true });
  } finally {
    database.close();
  }
}

/** Puts bytes into the gap of a page, as SQLite does where it moves a row. */
function plant(text: string): void {
  const bytes = readFileSync(file);
  for (let at = PAGE; at < bytes.length; at += PAGE) {
    if (bytes[at] !== 13) continue;
    const begin = at + 8 + 2 * bytes.readUInt16BE(at + 3);
    const end = at + bytes.readUInt16BE(at + 5);
    if (end - begin < text.length + 100) continue;
    bytes.write(text, begin + 50);
    writeFileSync(file, bytes);
    return;
  }
  throw new Error("no page has room");
}

/** A database with a secret in a row and a piece of it in a gap, closed. */
async function planted(piece: string): Promise<void> {
  const store = open();
  await ask(store, "ana", SECRET);
  await ask(store, "bob", "Bob drinks tea");
  await store.close();
  plant(piece);
  expect(inHeader("integrity_check")).toBe("ok");
}

describe("deleted text of which SQLite left a copy in the gap of a page", () => {
  it("is out of the files once a user is deleted, though only a piece was left", async () => {
    await planted(SECRET.slice(20, 60));
    expect(inFiles(SECRET.slice(25, 55))).toBe(true);
    const store = open();
    const spy = rewritten();
    await store.deleteUser("default", "ana" as UserId, false);
    await store.erased();
    expect(inFiles(SECRET.slice(25, 55))).toBe(false);
    expect(rewrites(spy)).toBe(1);
    expect(await store.scopesOf("default", "bob" as UserId)).toHaveLength(1);
    await store.close();
  });

  it("is looked for by the next process too, where one was killed in between", async () => {
    await planted(SECRET);
    const killed = new Database(file);
    killed.pragma("secure_delete = ON");
    killed.pragma("foreign_keys = ON");
    killed.exec("delete from scopes where user_id = 'ana'; pragma user_version = 1");
    killed.pragma("wal_checkpoint(TRUNCATE)");
    expect(inFiles(SECRET)).toBe(true);
    killed.close();
    const store = open();
    await expect.poll(() => inFiles(SECRET)).toBe(false);
    await store.erased();
    await store.close();
    expect(inHeader("user_version")).toBe(0);
  });

  it("waits while another process reads an older state, and is gone after", async () => {
    await planted(SECRET);
    const store = open();
    await ask(store, "cy", "Cy has a dog");
    const reader = new Database(file, { readonly: true });
    reader.exec("begin");
    reader.prepare("select count(*) from scopes").get();
    await store.deleteUser("default", "ana" as UserId, false);
    await store.erased();
    expect(inFiles(SECRET)).toBe(true);
    reader.exec("commit");
    await expect.poll(() => inFiles(SECRET)).toBe(false);
    reader.close();
    await store.close();
  });

  it("does not rewrite the file for what others still have, nor where nothing was left", async () => {
    const store = open();
    for (const user of ["ana", "bob", "cy"]) await ask(store, user, SECRET);
    const spy = rewritten();
    await store.deleteUser("default", "ana" as UserId, false);
    await store.erased();
    await store.deleteUser("default", "cy" as UserId, false);
    await store.deleteUser("default", "nobody" as UserId, false);
    await store.erased();
    expect(rewrites(spy)).toBe(0);
    expect(inFiles(SECRET)).toBe(true);
    await store.close();
    expect(inHeader("user_version")).toBe(0);
  });

  it("is in no byte of the files, whoever is deleted, when rows move as they do", async () => {
    const store = open();
    const bytes = () => readFileSync(file, "latin1") + readFileSync(`${file}-wal`, "latin1");
    let seed = 7;
    const pick = (most: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return Math.floor((seed / 2 ** 31) * most);
    };
    const texts = new Map<string, string[]>();
    let added = 0;
    for (let step = 0; step < (IS_WHOLE ? 1_500 : 300); step++) {
      const user = `user-${pick(30)}`;
      const own = texts.get(user) ?? [];
      if (step % 20 === 19 && own.length > 0) {
        const before = bytes();
        // A few stand on two pages.
        expect(own.some((mark) => before.includes(mark))).toBe(true);
        await store.deleteUser("default", user as UserId, false);
        await store.erased();
        texts.delete(user);
        const after = bytes();
        expect(own.filter((mark) => after.includes(mark))).toEqual([]);
        continue;
      }
      const memories = Object.fromEntries(
        Array.from({ length: 3 }, () => {
          const mark = `mark ${added++}x of ${user}`;
          own.push(mark);
          return [`m-${added}`, `${mark} ${"and more words ".repeat(1 + pick(60))}`];
        }),
      );
      texts.set(user, own);
      await composeInto(store, scopeOf(user), { requestId: `r-${step}`, question: "Well?", memories });
    }
    await store.close();
  });
});

describe("pieces of forgotten texts", () => {
  const text = fc.string({ unit: "grapheme", minLength: 6, maxLength: 400 });

  it("are found in whatever is left of a text, if it is as long as two of them, and of a short text in all of it", () => {
    fc.assert(
      fc.property(text, fc.nat(), fc.nat(), fc.uint8Array({ maxLength: 50 }), (whole, from, more, around) => {
        const bytes = Buffer.from(whole);
        const pieces = new ForgottenPieces();
        pieces.add(whole);
        const length = bytes.length < 16 ? bytes.length : Math.min(bytes.length, 31 + (more % bytes.length));
        const at = from % (bytes.length - length + 1);
        const left = Buffer.concat([Buffer.from(around), bytes.subarray(at, at + length), Buffer.from(around)]);
        expect(pieces.isIn(left, 0, left.length)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it("are not found where there is nothing of the text", () => {
    fc.assert(
      fc.property(text, fc.uint8Array({ maxLength: 2_000 }), (whole, bytes) => {
        const other = Buffer.from(bytes);
        if (other.includes(Buffer.from(whole).subarray(0, 6))) return;
        const pieces = new ForgottenPieces();
        pieces.add("the quick brown fox jumps over the lazy dog");
        expect(pieces.isIn(other, 0, other.length)).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });

  it("of stored messages are what was said, not what every message has", () => {
    const pieces = new ForgottenPieces();
    const said = 'She said: "the key is under the pot"';
    pieces.addJson([{ role: "assistant", content: said, tool_calls: [{ type: "function" }] }]);
    const stored = Buffer.from(JSON.stringify([{ role: "assistant", content: said }]));
    expect(pieces.isIn(stored, 0, stored.length)).toBe(true);
    const other = Buffer.from(JSON.stringify([{ role: "assistant", content: "Hello", tool_calls: [] }]));
    expect(pieces.isIn(other, 0, other.length)).toBe(false);
  });
});
