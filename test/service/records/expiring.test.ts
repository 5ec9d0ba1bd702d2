import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Swept, startSweeps } from "../../../src/cli/sweeps.js";
import type { ChatMessage, MemoryId, UserId } from "../../../src/core/index.js";
import { parseSection, sectionAtStart } from "../../../src/core/prompt/section.js";
import type { ComposeAnswer } from "../../../src/service/base/call-types.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { checkDatabase } from "../../store/checked-database.js";
import { storedCounts } from "../../stored-counts.js";
import { composeWith, memories, NOON, openService } from "../compose/service-fixture.js";

const DAY = 86_400_000;
const never = new AbortController().signal;

let directory: string;
let file: string;
let now: number;
let service: Memprefix;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "memprefix-expiring-"));
  file = join(directory, "memprefix.db");
  now = NOON;
  service = openService({ directory, now: () => now });
});
afterEach(async () => {
  await service.close();
  await rm(directory, { recursive: true });
});

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

  it("leaves sound data, prompts that go on with the same bytes, answers that repeat, and labels of one text", async () => {
    const step = fc.record({
      user: fc.constantFrom("ana", "bob"),
      talk: fc.constantFrom(null, "c", "d"),
      picks: fc.uniqueArray(fc.nat({ max: 7 }), { maxLength: 4 }),
      version: fc.nat({ max: 2 }),
      policy: fc.constantFrom("prefix-exact", "context-pilot", "knowledge-tree", "access-frequency", "carry-over"),
      retention: fc.constantFrom("keep", "volatile", "auto"),
      hours: fc.nat({ max: 60 }),
      after: fc.constantFrom("nothing", "nothing", "nothing", "sweep", "forget", "evict"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 30 }), async (steps) => {
        await service.close();
        await rm(directory, { recursive: true });
        directory = await mkdtemp(join(tmpdir(), "memprefix-expiring-"));
        file = join(directory, "memprefix.db");
        now = NOON;
        service = openService({ directory, now: () => now });
        const talks = new Map<string, ChatMessage[]>();
        const answers = new Map<
          string,
          { readonly again: () => Promise<ComposeAnswer>; readonly answer: ComposeAnswer }
        >();
        const texts = new Map<string, string>();
        const usersThere = new Set<string>();
        for (const [at, given] of steps.entries()) {
          now += given.hours * 3_600_000;
          const { user, talk } = given;
          const history = (talk && talks.get(`${user} ${talk}`)) ?? [];
          const messages = [...history, { role: "user", content: `Question ${at}` }];
          const known = Object.fromEntries(
            given.picks.map((pick) => [
              `m${pick}`,
              `Fact ${pick}${pick < 4 ? ` as of ${given.version}` : ""} of ${user}`,
            ]),
          );
          const request = {
            userId: user,
            requestId: `r-${at}`,
            conversationId: talk,
            messages,
            memories: memories(known),
            policy: given.policy,
            retention: given.retention,
          } as Parameters<typeof composeWith>[1];
          const answer = await composeWith(service, request);
          usersThere.add(user);
          answers.set(`${user} r-${at}`, { again: () => composeWith(service, request), answer });
          if (talk) talks.set(`${user} ${talk}`, [...messages, { role: "assistant", content: `Answer ${at}` }]);
          for (const message of answer.messages) {
            const section = typeof message.content === "string" ? sectionAtStart(message.content) : null;
            for (const { label, text } of (section === null ? null : parseSection(section))?.blocks ?? []) {
              // Single prompts write none.
              if (label === null) continue;
              const name = `${user} ${label}`;
              expect(texts.get(name) ?? text).toBe(text);
              texts.set(name, text);
            }
          }
          if (given.after === "evict") await service.evict([`r-${at}` as never]);
          if (given.after === "forget") {
            await service.forgetMemory(user as UserId, `m${at % 8}` as MemoryId);
            for (const name of [...answers.keys()]) if (name.startsWith(`${user} `)) answers.delete(name);
          }
          if (given.after === "sweep") {
            await sweep(2);
            expect((await checkDatabase(file)).findings).toEqual([]);
            const left = new Database(file, { readonly: true });
            const there = left
              .prepare("select user_id || ' ' || requests.id from requests join scopes on scopes.id = scope_id")
              .pluck()
              .all() as string[];
            const scopes = left.prepare("select user_id from scopes").pluck().all() as string[];
            left.close();
            for (const name of [...answers.keys()]) if (!there.includes(name)) answers.delete(name);
            // A user of whom nothing is left begins anew.
            for (const gone of [...usersThere].filter((name) => !scopes.includes(name))) {
              usersThere.delete(gone);
              for (const name of [...texts.keys()]) if (name.startsWith(`${gone} `)) texts.delete(name);
            }
            for (const { again, answer: before } of answers.values()) expect(await again()).toEqual(before);
          }
        }
      }),
      { numRuns: 40 },
    );
  });
});
