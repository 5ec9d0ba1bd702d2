import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, vi } from "vitest";
import { ada, embeddedDirectory, never, present, SECRET, SECRET_WORDS, search } from "./embedded-directory.js";
import { scopeOf } from "./memory-source.suite.js";

const directory = embeddedDirectory();
const bob = scopeOf("bob");

/** So long that SQLite keeps it on pages of its own, which a deletion frees as they are. */
const LONG_SECRET = `${SECRET}. `.repeat(100);

const marker = () => join(directory.dataDir, "mem0", "erasure-pending");

describe("what the embedded Mem0 forgets", () => {
  it("has the text nowhere on disk once a memory is deleted", async () => {
    const source = directory.open();
    const [added] = await source.add(ada, [{ text: LONG_SECRET }, { text: "Ada drinks green tea" }], never);
    await search(source, SECRET);
    expect(directory.wordsOnDisk(SECRET_WORDS)).toEqual(SECRET_WORDS);
    expect(await source.delete(ada, present(added).id, never)).toBe(true);
    expect(directory.wordsOnDisk(SECRET_WORDS)).toEqual([]);
    expect(directory.wordsOnDisk(["green tea"])).toEqual(["green tea"]);
  });

  it("has neither rows nor text nor the name of a user that it forgot", async () => {
    const source = directory.open();
    const user = scopeOf("Zwingli");
    for (const scope of [user, scopeOf("Zwingli", "Xylophone"), bob]) {
      await source.add(
        scope,
        Array.from({ length: 40 }, (_, index) => ({ text: `${SECRET} ${index}` })),
        never,
      );
    }
    await source.deleteUser(user, never);
    expect(directory.rowsOf("vectors.db")).toHaveLength(40);
    await source.deleteUser(bob, never);
    expect(directory.rowsOf("vectors.db")).toEqual([]);
    expect(directory.wordsOnDisk([...SECRET_WORDS, "bob"])).toEqual([]);
  });

  it("puts nothing into the entity store", async () => {
    const source = directory.open();
    await source.add(ada, [{ text: SECRET }, { text: 'Ada met "The Quetzalcoatl Society" in Paris' }], never);
    await search(source, "Who is Dr. Quetzalcoatl Zwingli of Ouagadougou?");
    expect(directory.rowsOf("vectors_entities.db")).toEqual([]);
  });

  it("finishes an erasure that a crash cut off", async () => {
    const source = directory.open();
    await source.add(ada, [{ text: LONG_SECRET }, { text: "Ada drinks green tea" }], never);
    await source.close();
    // What a process leaves that is killed between the deletion and the erasure.
    writeFileSync(marker(), "");
    const database = new Database(join(directory.dataDir, "mem0", "vectors.db"));
    database.prepare("DELETE FROM vectors WHERE payload LIKE '%Zwingli%'").run();
    database.close();
    expect(directory.wordsOnDisk(SECRET_WORDS)).not.toEqual([]);
    expect(await search(directory.open(), "tea")).toMatchObject([{ text: "Ada drinks green tea" }]);
    expect(directory.wordsOnDisk(SECRET_WORDS)).toEqual([]);
    expect(existsSync(marker())).toBe(false);
  });

  it("deletes even where it cannot erase now, and erases the next time", async () => {
    const source = directory.open();
    const [secret, tea] = await source.add(ada, [{ text: LONG_SECRET }, { text: "Ada drinks green tea" }], never);
    const sqlite = Database.prototype.exec;
    const exec = vi.spyOn(Database.prototype, "exec").mockImplementation(function (this: Database.Database, sql) {
      if (sql === "VACUUM") throw new Error("database or disk is full");
      return sqlite.call(this, sql);
    });
    expect(await source.delete(ada, present(secret).id, never)).toBe(true);
    exec.mockRestore();
    expect(await search(source, "Zwingli")).not.toMatchObject([{ text: LONG_SECRET }]);
    expect(directory.wordsOnDisk(SECRET_WORDS)).not.toEqual([]);
    expect(existsSync(marker())).toBe(true);
    expect(await source.delete(ada, present(tea).id, never)).toBe(true);
    expect(directory.wordsOnDisk(SECRET_WORDS)).toEqual([]);
    expect(existsSync(marker())).toBe(false);
  });

  it("says to one caller only that it deleted a memory", async () => {
    const source = directory.open();
    const [added] = await source.add(ada, [{ text: "Ada drinks green tea" }], never);
    const id = present(added).id;
    const outcomes = await Promise.all([1, 2, 3].map(() => source.delete(ada, id, never)));
    expect(outcomes).toEqual([true, false, false]);
  });

  it("erases once for deletions that wait together", async () => {
    const source = directory.open();
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
