import { readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Swept, startSweeps } from "../../../src/cli/sweeps.js";
import type { UserId } from "../../../src/core/index.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { checkDatabase } from "../../store/checked-database.js";
import { storedCounts } from "../../stored-counts.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { composeWith, memories, NOON, openService } from "../compose/service-fixture.js";

const DAY = 86_400_000;
const never = new AbortController().signal;

const newFolder = temporaryFolders();
let directory: string;
let file: string;
let now: number;
let service: Memprefix;
beforeEach(() => {
  directory = newFolder();
  file = join(directory, "memprefix.db");
  now = NOON;
  service = openService({ directory, now: () => now });
});
afterEach(() => service.close());

const ask = (user: string, texts: Readonly<Record<string, string>>, more: object = {}) =>
  composeWith(service, { userId: user, query: "Well?", memories: memories(texts), ...more });
async function sweep(days: number): Promise<number> {
  const before = now - days * DAY;
  await service.dropFigures(before, 1_000);
  return service.dropUnused(before, never);
}
const blocksOf = async (user: string) => storedCounts(await service.exportUser(user as UserId)).blocks;
const bytes = () => readFileSync(file, "latin1") + readFileSync(`${file}-wal`, "latin1");
const rows = (table: string) => {
  const database = new Database(file, { readonly: true });
  try {
    return database.prepare(`select count(*) from ${table}`).pluck().get();
  } finally {
    database.close();
  }
};

describe("what nobody used for a time", () => {
  it("goes: single prompts, whole conversations, their requests, instructions and texts; out of the files too", async () => {
    const talk = { conversationId: "old talk", system: "Be as old as the hills" };
    await ask("ana", { m1: "The old key is under the flower pot" }, { ...talk, requestId: "r-old" });
    await ask("ana", { m2: "The old car is red" });
    now += 10 * DAY;
    await ask("ana", { m3: "The new key is in the drawer" }, { requestId: "r-new" });
    expect(await sweep(5)).toBe(2);
    for (const gone of ["flower pot", "car is red", "old talk", "old as the hills", "r-old"])
      expect(bytes().includes(gone), gone).toBe(false);
    expect(bytes().includes("in the drawer")).toBe(true);
    expect([rows("turns"), rows("requests"), rows("conversations"), rows("messages")]).toEqual([1, 1, 0, 1]);
    expect(await blocksOf("ana")).toBe(1);
    expect((await checkDatabase(file)).findings).toEqual([]);
    expect(await sweep(5)).toBe(0);
  });

  it("goes where another user's is damaged, which is said at the end", async () => {
    await ask("ana", { m1: "The key is under the pot" });
    await ask("bob", { m1: "Bob's car is red" });
    await service.close();
    const database = new Database(file);
    const changes = "select id from scopes where user_id = 'ana'";
    database.exec(`update changes set changes = 'damaged' where scope_id = (${changes})`);
    database.close();
    now += 10 * DAY;
    service = openService({ directory, now: () => now });
    await expect(sweep(5)).rejects.toMatchObject({ fault: "damaged" });
    expect(rows("scopes")).toBe(1);
    expect(bytes().includes("car is red")).toBe(false);
  });

  it("is looked for again and again, until told to stop", async () => {
    await ask("ana", { m1: "The key is under the pot" });
    now += 10 * DAY;
    const faults: unknown[] = [];
    const stop = startSweeps(service, { keepDays: 5, now: () => now, onFault: (fault) => faults.push(fault) });
    await expect.poll(() => rows("scopes")).toBe(0);
    await stop();
    expect(faults).toEqual([]);
  });

  it("is looked for again where the last sweep failed, even if its fault could not be logged", async () => {
    vi.useFakeTimers();
    let sweeps = 0;
    const swept: Swept = {
      dropUnused: async () => {},
      dropFigures: async () => {
        sweeps++;
        throw new Error("the disk is full");
      },
    };
    const onFault = () => {
      throw new Error("the log is full, too");
    };
    const stop = startSweeps(swept, { keepDays: 5, now: () => now, onFault });
    await vi.advanceTimersByTimeAsync(3 * 3_600_000);
    vi.useRealTimers();
    await stop();
    expect(sweeps).toBe(4);
  });
});
