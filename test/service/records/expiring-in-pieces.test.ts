import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ChatMessage, residencyModel, type UserId } from "../../../src/core/index.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { journalIn } from "../../../src/store/sqlite/sqlite-journal.js";
import { checkDatabase } from "../../store/checked-database.js";
import { composeWith, memories, NOON, openService } from "../compose/service-fixture.js";
import { doingBefore } from "../shared-database.js";

const HOUR = 3_600_000;
const never = new AbortController().signal;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "memprefix-pieces-"));
});
afterEach(() => rm(directory, { recursive: true }));

/**
 * Everything that is stored, less which of its scope's records each is: pieces are more records. Hashes of memories are a set, in whatever
 * order blocks came to be registered.
 */
function stored(file: string): ReadonlyMap<string, unknown> {
  const database = new Database(file, { readonly: true });
  const tables = database.prepare("select name from sqlite_schema where type = 'table'").pluck().all() as string[];
  const rows = tables
    .filter((name) => !/^sqlite|^__drizzle/.test(name))
    .map((name) => {
      const all = database.prepare(`select * from ${name}`).all() as Record<string, unknown>[];
      const plain = all.map(({ seq: _seq, n: _n, sum: _sum, ...row }) => JSON.stringify(inSetOrder(row))).sort();
      return [name, plain] as const;
    });
  database.close();
  return new Map(rows);
}

/** Hashes take four bytes each. */
function inSetOrder({ hashes, ...row }: Record<string, unknown>): Record<string, unknown> {
  return Buffer.isBuffer(hashes) ? { ...row, hashes: hashes.toString("hex").match(/.{8}/g)?.sort() } : row;
}

const step = fc.record({
  user: fc.constantFrom("ana", "ana", "bob"),
  talk: fc.constantFrom(null, "c", "d"),
  picks: fc.uniqueArray(fc.nat({ max: 7 }), { maxLength: 4 }),
  version: fc.nat({ max: 2 }),
  system: fc.constantFrom("Be kind.", "Be short.", "Be old."),
  policy: fc.constantFrom("prefix-exact", "context-pilot", "knowledge-tree", "access-frequency", "carry-over"),
  retention: fc.constantFrom("keep", "volatile", "auto"),
  hours: fc.nat({ max: 30 }),
  isEvicted: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A life of some users, in a file. Gives the time at its end, and what was said in each conversation. */
async function live(file: string, steps: readonly Step[], slots: number | null) {
  let now = NOON;
  const residency = residencyModel(slots === null ? { kind: "all" } : { kind: "slots", slots });
  const service = openService({ file, now: () => now, residency });
  const talks = new Map<string, ChatMessage[]>();
  for (const [at, { user, talk, picks, version, hours, isEvicted, ...given }] of steps.entries()) {
    now += hours * HOUR;
    const history = (talk && talks.get(`${user} ${talk}`)) ?? [];
    const messages = [...history, { role: "user", content: `Question ${at}` }];
    const facts = picks.map((pick) => [`m${pick}`, `Fact ${pick}${pick < 4 ? ` as of ${version}` : ""} of ${user}`]);
    const asked = { userId: user, requestId: `r-${at}`, conversationId: talk, messages, ...given };
    await composeWith(service, { ...asked, memories: memories(Object.fromEntries(facts)) } as never);
    if (talk) talks.set(`${user} ${talk}`, [...messages, { role: "assistant", content: `Answer ${at}` }]);
    if (isEvicted) await service.evict([`r-${at}` as never]);
  }
  await service.close();
  return { now, talks, residency };
}

const lives = {
  steps: fc.array(step, { minLength: 4, maxLength: 25 }),
  slots: fc.constantFrom(null, 1, 2),
  most: fc.constantFrom(1, 2, 3, 5),
  hours: fc.nat({ max: 200 }),
};

describe("what nobody used for a time, going in pieces", () => {
  it("leaves what going at once leaves, byte for byte", async () => {
    const same = fc.asyncProperty(fc.record(lives), async ({ steps, slots, most, hours }) => {
      const files = ["whole.db", "pieces.db"].map((name) => join(directory, name));
      const [whole = "", pieces = ""] = files;
      await Promise.all(files.flatMap((file) => ["", "-wal", "-shm"].map((end) => rm(file + end, { force: true }))));
      const { now, residency } = await live(whole, steps, slots);
      await copyFile(whole, pieces);
      const counts = [];
      for (const [file, maxExpiredAtOnce] of [[whole, 1_000] as const, [pieces, most] as const]) {
        const service = openService({ file, now: () => now, residency, maxExpiredAtOnce });
        counts.push(await service.dropUnused(now - hours * HOUR, never));
        await service.close();
      }
      expect(counts[1]).toBe(counts[0]);
      expect(stored(pieces)).toEqual(stored(whole));
      expect((await checkDatabase(pieces)).findings).toEqual([]);
    });
    await fc.assert(same, { numRuns: 40 });
  });

  it("leaves sound data after each piece, and conversations that go on, also those that went in part", async () => {
    const sound = fc.asyncProperty(fc.record({ ...lives, stopAfter: fc.nat({ max: 6 }) }), async (given) => {
      const { steps, slots, most, hours, stopAfter } = given;
      const file = join(directory, "memprefix.db");
      await Promise.all(["", "-wal", "-shm"].map((end) => rm(file + end, { force: true })));
      const { now, talks, residency } = await live(file, steps, slots);
      const stop = new AbortController();
      const service = openService({ file, now: () => now, residency, maxExpiredAtOnce: most });
      const sweep = service.dropUnused(now - hours * HOUR, stop.signal);
      // Pieces come one in a turn of the event loop, or fewer.
      for (let turn = 0; turn < stopAfter; turn++) await new Promise((go) => setTimeout(go, 2));
      stop.abort();
      await sweep;
      expect((await checkDatabase(file)).findings).toEqual([]);
      for (const [name, messages] of talks) {
        const [userId = "", conversationId] = name.split(" ");
        const asked = [...messages, { role: "user", content: "Still there?" }];
        const known = memories({ m1: "Fact 1 of old" });
        const first = await composeWith(service, { userId, conversationId, messages: asked, memories: known } as never);
        const more = [...asked, { role: "assistant", content: "Yes." }, { role: "user", content: "And now?" }];
        const second = await composeWith(service, {
          userId,
          conversationId,
          messages: more,
          memories: [],
          retention: "keep",
        } as never);
        expect(second.messages).toHaveLength(more.length);
        if (first.plan.retention === "keep")
          expect(second.messages.slice(0, first.messages.length)).toEqual(first.messages);
      }
      await service.dropUnused(now - hours * HOUR, never);
      expect((await checkDatabase(file)).findings).toEqual([]);
      await service.close();
    });
    await fc.assert(sound, { numRuns: 25 });
  });

  describe("in two processes at once", () => {
    const file = () => join(directory, "memprefix.db");
    let now: number;
    beforeEach(() => {
      now = NOON;
    });
    const say = async (service: Memprefix, count: number, system: string) => {
      for (let at = 0; at < count; at++) {
        const messages = [
          { role: "system", content: system },
          { role: "user", content: `Question ${at}` },
        ];
        await composeWith(service, { userId: "ana", messages, memories: memories({ m1: "Ana likes tea" }) });
      }
    };
    const instructions = () => {
      const database = new Database(file(), { readonly: true });
      const rows = database.prepare("select messages from instructions").pluck().all();
      database.close();
      return rows.map(String).filter((row) => row.includes("system"));
    };

    it("leaves no instructions that only expired turns had, whichever turns go where", async () => {
      const options = { now: () => now, maxExpiredAtOnce: 2 };
      const [one, other] = [openService({ file: file(), ...options }), openService({ file: file(), ...options })];
      await say(one, 60, "Be old.");
      now += 100 * HOUR;
      await say(one, 1, "Be young.");
      const dropped = await Promise.all([one, other].map((service) => service.dropUnused(now - HOUR, never)));
      expect(dropped.reduce((sum, count) => sum + count)).toBe(60);
      expect(instructions()).toEqual([expect.stringContaining("Be young.")]);
      await Promise.all([one.close(), other.close()]);
      expect((await checkDatabase(file())).findings).toEqual([]);
    });

    it("leaves none where the other one takes turns that are yet to come here", async () => {
      const other = openService({ file: file(), now: () => now });
      const store = doingBefore(new JournalStore(journalIn(openDatabase(file()))), "commitExpiry", async () => {
        expect(await other.dropUnused(NOON + HOUR, never)).toBe(3);
      });
      const one = openService({ store, now: () => now, maxExpiredAtOnce: 2 });
      await say(one, 3, "Be old.");
      now += 10 * HOUR;
      await say(one, 3, "Be old.");
      now += 10 * HOUR;
      await say(one, 1, "Be young.");
      expect(await one.dropUnused(now - HOUR, never)).toBe(3);
      expect(instructions()).toEqual([expect.stringContaining("Be young.")]);
      await Promise.all([one.close(), other.close()]);
      expect((await checkDatabase(file())).findings).toEqual([]);
    });
  });

  it("lets other requests through between two pieces, those of the same user too", async () => {
    let now = NOON;
    const service = openService({ file: join(directory, "memprefix.db"), now: () => now, maxExpiredAtOnce: 5 });
    const ask = (userId: string, at: number) =>
      composeWith(service, { userId, query: `Question ${at}`, memories: memories({ [`m${at}`]: `Fact ${at}` }) });
    for (let at = 0; at < 300; at++) await ask("ana", at);
    now += 100 * HOUR;
    let isDone = false;
    const sweep = service.dropUnused(now - HOUR, never).finally(() => {
      isDone = true;
    });
    let between = 0;
    while (!isDone) {
      await Promise.all([ask("ana", 1_000 + between), ask("bob", between)]);
      if (!isDone) between++;
    }
    expect(await sweep).toBe(300);
    expect(between).toBeGreaterThan(10);
    const { counts } = await service.describeIndex("ana" as UserId, null, 1);
    expect(counts.turns).toBe(counts.blocks);
    expect(counts.turns).toBeGreaterThanOrEqual(between);
    await service.close();
    expect((await checkDatabase(join(directory, "memprefix.db"))).findings).toEqual([]);
  });
});
