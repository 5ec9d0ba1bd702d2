import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import {
  DEFAULT_SCOPE_BOUNDS,
  type MemoryId,
  type RequestId,
  type Scope,
  type UserId,
} from "../../../src/core/index.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { WorkingScopes } from "../../../src/service/scopes/working-scopes.js";
import { StaleScopeError } from "../../../src/store/api/store.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { journalIn } from "../../../src/store/sqlite/sqlite-journal.js";
import { composeInto, deltaOf, recordFor, stateOf } from "../../store/api/stored-compose.js";
import { ana, composeWith, memories, NOON, openService } from "../compose/service-fixture.js";

const directory = mkdtempSync(join(tmpdir(), "memprefix-scopes-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const scopeOf = (n: number): Scope => ({ tenant: "default", userId: `user-${n}` as UserId, agentId: null });

/** An object that tells of each call of a method. */
function countingCalls<T extends object>(of: T, called: (name: string) => void): T {
  return new Proxy(of, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        called(String(name));
        return Reflect.apply(value, target, args);
      };
    },
  });
}

describe("working scopes", () => {
  it("weigh no more than their bound, whoever asks, and drop the least recently used first", async () => {
    const store = new JournalStore(journalIn(openDatabase(":memory:")));
    const scopes = new WorkingScopes(store, (text) => text.length, 50_000, DEFAULT_SCOPE_BOUNDS);
    for (let n = 0; n < 200; n++) {
      await scopes.use(scopeOf(n), () => {});
      await scopes.use(scopeOf(0), () => {});
      expect(scopes.weight).toBeLessThanOrEqual(50_000);
    }
    expect(scopes.size).toBeLessThan(30);
    const [hot, cold] = await Promise.all([0, 1].map((n) => scopes.use(scopeOf(n), ({ state }) => state)));
    await scopes.use(scopeOf(0), ({ state }) => expect(state).toBe(hot));
    await scopes.use(scopeOf(1), ({ state }) => expect(state).toBe(cold));
    await store.close();
  });

  it("are loaded again after work on them threw, and work is repeated when another process was faster", async () => {
    const store = new JournalStore(journalIn(openDatabase(":memory:")));
    const scopes = new WorkingScopes(store, (text) => text.length, 1_000_000, DEFAULT_SCOPE_BOUNDS);
    const seen = new Set<unknown>();
    await expect(
      scopes.use(scopeOf(0), ({ state }) => {
        seen.add(state);
        throw new Error("broken");
      }),
    ).rejects.toThrow("broken");
    let attempts = 0;
    await scopes.use(scopeOf(0), ({ state }) => {
      seen.add(state);
      if (++attempts < 3) throw new StaleScopeError();
    });
    expect(attempts).toBe(3);
    expect(seen.size).toBe(4);
    const alwaysLate = scopes.use(scopeOf(0), () => {
      throw new StaleScopeError();
    });
    await expect(alwaysLate).rejects.toMatchObject({ name: "StoreUnavailableError", fault: "busy" });
    await store.close();
  });

  it("that were let go of while they were worked on weigh nothing afterwards", async () => {
    const store = new JournalStore(journalIn(openDatabase(":memory:")));
    const scopes = new WorkingScopes(store, (text) => text.length, 1_000_000, DEFAULT_SCOPE_BOUNDS);
    await scopes.use(scopeOf(0), async () => {
      await Promise.resolve();
      scopes.drop(scopeOf(0));
    });
    expect([scopes.size, scopes.weight]).toEqual([0, 0]);
    await store.close();
  });

  it("are used without a read of the store; a commit finds out that another process was first, and so does a check", async () => {
    const file = join(directory, "first.db");
    const [store, other] = [
      new JournalStore(journalIn(openDatabase(file))),
      new JournalStore(journalIn(openDatabase(file))),
    ];
    const scopes = new WorkingScopes(store, (text) => text.length, 1_000_000, DEFAULT_SCOPE_BOUNDS);
    await composeInto(other, scopeOf(0), { requestId: "r1", question: "Tea?", memories: { m1: "Green tea." } });
    const before = await scopes.use(scopeOf(0), ({ state }) => state);
    await composeInto(other, scopeOf(0), { requestId: "r2", question: "Tea?", memories: { m2: "Black tea." } });
    expect(await scopes.use(scopeOf(0), ({ state }) => state)).toBe(before);
    const sizes: number[] = [];
    await scopes.use(scopeOf(0), async (working) => {
      sizes.push(working.state.register.size);
      working.state.rememberWorker("north", []);
      await working.commit((base) => store.commitChanges(scopeOf(0), base, deltaOf(working.state)));
    });
    expect(sizes).toEqual([1, 2]);
    await composeInto(other, scopeOf(0), { requestId: "r3", question: "Tea?", memories: { m3: "No tea." } });
    expect(await scopes.read(scopeOf(0), ({ state }) => state.register.size)).toBe(3);
    await other.deleteUser("default", scopeOf(0).userId, false);
    const checked = scopes.use(scopeOf(0), async (working) => {
      await working.check();
      return working.state.register.size;
    });
    expect(await checked).toBe(0);
    await Promise.all([store.close(), other.close()]);
  });

  it("know the requests under way as the store does, and ask it for those of before only", async () => {
    const store = new JournalStore(journalIn(openDatabase(":memory:")));
    const scopes = new WorkingScopes(store, (text) => text.length, 1_000_000, DEFAULT_SCOPE_BOUNDS);
    const asked: number[] = [];
    const underWay = store.underWaySince.bind(store);
    store.underWaySince = (scope, since) => {
      asked.push(since);
      return underWay(scope, since);
    };
    const scope = scopeOf(0);
    for (const requestId of ["a", "b"]) await composeInto(store, scope, { requestId, question: "?", memories: {} });
    await scopes.use(scope, async (working) => {
      const at = NOON;
      const compare = async (since: number) =>
        expect(await working.requests.since(since)).toBe(await underWay(scope, since));
      await compare(at - 1);
      for (let n = 0; n < 40; n++) {
        const { record } = await recordFor(store, scope, { requestId: `r${n}`, question: "?", memories: {} });
        await working.commit((base) => store.commitCompose(scope, base, { ...record, at: at + n }));
        working.requests.composed(`r${n}` as RequestId, at + n);
        if (n % 3 === 0) {
          const ids = [`r${n}` as RequestId];
          const { state } = await stateOf(store, scope);
          await working.commit((base) => store.commitEviction(scope, base, deltaOf(state), ids));
          working.requests.ended(ids);
        }
        // Of more the store does not look which are open.
        for (const since of n < 28 ? [at - 1, at, at + n - 5, at + n] : [at + 15, at + n]) await compare(since);
      }
      expect(await working.requests.since(at - 1)).toBe(at - 1);
    });
    expect(asked.length).toBeLessThan(4);
    await store.close();
  });

  it("that are not in memory are asked for once, with the conversation", async () => {
    const store = new JournalStore(journalIn(openDatabase(":memory:")));
    const asked: string[] = [];
    const counted = countingCalls(store, (name) => asked.push(name));
    let now = NOON;
    const service = openService({ store: counted, maxWorkingBytes: 1, now: () => now });
    const history: { role: string; content: string }[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const messages = [...history, { role: "user", content: `Question ${turn}` }];
      const options = { memories: memories({ m1: "Ana likes tea.", m2: `Fact ${turn}` }), messages };
      for (const conversationId of ["c", null]) {
        // Nothing is under way any more.
        now += 3_600_000;
        await composeWith(service, { ...options, userId: "ana", conversationId });
        // Another user takes its place.
        await composeWith(service, { ...options, userId: "bo", conversationId: null });
      }
      history.push(...messages.slice(-1), { role: "assistant", content: "I see." });
    }
    // What first tokens take is asked for by time, and belongs to no user.
    const ofScopes = asked.filter((name) => name !== "countFirstTokenTimes");
    expect(ofScopes).toEqual(Array.from({ length: 12 }, () => ["loadScope", "commitCompose"]).flat());
    await service.close();
  });

  it("of a client that sends windows are asked what was said once after they are loaded, and then nothing", async () => {
    const asked: string[] = [];
    const database = journalIn(openDatabase(":memory:"));
    const serviceOn = () =>
      openService({ store: new JournalStore(countingCalls(database, (name) => asked.push(name))), now: () => now });
    let now = NOON;
    const [one, two] = [serviceOn(), serviceOn()];
    const say = async (service: Memprefix, turn: number) => {
      now += 3_600_000;
      asked.length = 0;
      const said = turn === 0 ? ["Question 0"] : [`Question ${turn - 1}`, "I see.", `Question ${turn}`];
      const messages = said.map((content, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content }));
      const options = { userId: "ana", conversationId: "c", memories: memories({ m1: "Ana likes tea." }), messages };
      await composeWith(service, options);
      return asked.filter((name) => name !== "countFirstTokenTimes");
    };
    expect(await say(one, 0)).toEqual(["load", "write"]);
    // The whole history.
    expect(await say(one, 1)).toEqual(["write"]);
    await say(one, 2);
    expect(await say(one, 3)).toEqual(["write"]);
    // The newest turn; those of its epoch before it, together; and the instructions.
    const ofHistory = ["list", "read", "list", "read", "shared"];
    const loading = ["deletionsOf", "load", "versionOf", "versionOf", "write"];
    expect((await say(two, 4)).sort()).toEqual([...loading, ...ofHistory].sort());
    expect(await say(two, 5)).toEqual(["write"]);
    await one.close();
  });

  it("change no byte of an answer: a service that keeps none in memory answers as one that keeps all", async () => {
    const [keeps, drops] = [openService({}), openService({ maxWorkingBytes: 1 })];
    const history: { role: string; content: string }[] = [];
    for (let turn = 0; turn < 12; turn++) {
      for (const userId of ["ana", "bo"]) {
        const asked = { role: "user", content: `Question ${turn}` };
        const texts = Object.fromEntries([turn, turn + 1, 7].map((n) => [`m${n}`, `Fact ${n} of ${userId}`]));
        const options = {
          userId,
          conversationId: turn % 3 === 0 ? null : "c",
          messages: turn % 3 === 0 ? [asked] : [...history, asked],
          memories: memories(texts),
        };
        expect(await composeWith(drops, options)).toEqual(await composeWith(keeps, options));
        if (userId === "bo") history.push(asked, { role: "assistant", content: "Yes." });
      }
    }
    await Promise.all([keeps.close(), drops.close()]);
  });

  it("agree between two processes on one file: each continues what the other composed", async () => {
    const file = join(directory, "two.db");
    const [one, two, alone] = [openService({ file }), openService({ file }), openService({})];
    const history: { role: string; content: string }[] = [];
    for (let turn = 0; turn < 8; turn++) {
      const asked = { role: "user", content: `Question ${turn}` };
      const options = {
        userId: ana,
        conversationId: "c",
        requestId: `r${turn}`,
        messages: [...history, asked],
        memories: memories({ [`m${turn}`]: `Fact ${turn}`, m0: "Fact 0" }),
      };
      expect(await composeWith(turn % 2 === 0 ? one : two, options)).toEqual(await composeWith(alone, options));
      history.push(asked, { role: "assistant", content: "Yes." });
    }
    await Promise.all([one.close(), two.close(), alone.close()]);
  });

  it("forget a memory that another process told together with one that this one has not heard of", async () => {
    const file = join(directory, "forgetting.db");
    const [one, two] = [0, 1].map(() => {
      const database = openDatabase(file);
      return openService({ database, store: new JournalStore(journalIn(database)) });
    }) as [Memprefix, Memprefix];
    const asked = (requestId: string, texts: Readonly<Record<string, string>>) => ({
      userId: ana,
      conversationId: "c",
      requestId,
      messages: [{ role: "user", content: "Tea?" }],
      memories: memories(texts),
    });
    await composeWith(one, asked("r1", { m1: "Green tea." }));
    await composeWith(two, asked("r2", { m1: "Green tea.", m2: "Black tea." }));
    await one.forgetMemory(ana, "m1" as MemoryId);
    const again = await composeWith(two, asked("r2", {}));
    expect(JSON.stringify(again.messages)).toContain("Black tea.");
    expect(JSON.stringify(again.messages)).not.toContain("Green tea.");
    await Promise.all([one.close(), two.close()]);
  });
});
