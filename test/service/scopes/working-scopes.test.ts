import { describe, expect, it, onTestFinished } from "vitest";
import { DEFAULT_SCOPE_BOUNDS, type RequestId } from "../../../src/core/index.js";
import type { Memprefix } from "../../../src/service/library/memprefix.js";
import { WorkingScopes } from "../../../src/service/scopes/working-scopes.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { SqliteDatabase } from "../../../src/store/sqlite/database.js";
import { openFile, openInMemory } from "../../../src/store/sqlite/open.js";
import type { Store } from "../../../src/store/store.js";
import { ComposedUsers, scopeOf } from "../../store/composed-users.js";
import { composeWith, memories, NOON, openService } from "../compose/service-fixture.js";

const user = (n: number) => scopeOf(`user-${n}`);

function openScopes(maxBytes: number): { readonly store: Store; readonly scopes: WorkingScopes } {
  const store = storeIn(openInMemory());
  onTestFinished(() => store.close());
  return { store, scopes: new WorkingScopes(store, (text) => text.length, maxBytes, DEFAULT_SCOPE_BOUNDS) };
}

/** A service in memory, and the queries that it sends, except for figures of prompts. */
function openCounted(options: Parameters<typeof openService>[0]): { service: Memprefix; queries: string[] } {
  const connection = openFile(":memory:");
  const queries: string[] = [];
  const read = connection.read.bind(connection);
  connection.read = (text, values) => {
    if (!text.includes("from prompts")) queries.push(text);
    return read(text, values);
  };
  const store = storeIn(new SqliteDatabase(connection, () => false, null));
  return { service: openService({ ...options, store }), queries };
}

describe("working scopes", () => {
  it("weigh no more than their bound, whoever asks, and drop the least recently used first", async () => {
    const { scopes } = openScopes(50_000);
    for (let n = 0; n < 200; n++) {
      for (const one of [n, 0]) {
        await scopes.begin(user(one), NOON);
        await scopes.use(user(one), () => {});
      }
      expect(scopes.weight).toBeLessThanOrEqual(50_000);
    }
    expect(scopes.size).toBeLessThan(30);
    const [hot, cold] = await Promise.all([0, 1].map((n) => scopes.use(user(n), ({ state }) => state)));
    await scopes.use(user(0), ({ state }) => expect(state).toBe(hot));
    await scopes.use(user(1), ({ state }) => expect(state).toBe(cold));
  });

  it("are loaded again after work on them threw, and weigh nothing where they were dropped meanwhile", async () => {
    const { scopes } = openScopes(1_000_000);
    await scopes.begin(user(0), NOON);
    const before = await scopes.use(user(0), ({ state }) => state);
    const throwing = scopes.use(user(0), ({ state }) => {
      expect(state).toBe(before);
      throw new Error("broken");
    });
    await expect(throwing).rejects.toThrow("broken");
    expect([scopes.size, scopes.weight]).toEqual([0, 0]);
    await scopes.use(user(0), ({ state }) => {
      expect(state).not.toBe(before);
      scopes.drop(user(0));
    });
    expect([scopes.size, scopes.weight]).toEqual([0, 0]);
  });

  it("take another process's commit on what was committed, not on what work without a commit changed since", async () => {
    const store = storeIn(new SqliteDatabase(openFile(":memory:"), () => true, null));
    onTestFinished(() => store.close());
    const [one, other] = [1, 2].map(
      () => new WorkingScopes(store, (text) => text.length, 1_000_000, DEFAULT_SCOPE_BOUNDS),
    );
    const users = new ComposedUsers(store);
    const compose = (requestId: string) =>
      users.compose(user(0), {
        requestId,
        question: requestId,
        memories: { m1: "One.", m2: "Two." },
        conversation: "c",
      });
    await compose("r1");
    await one?.use(user(0), ({ state }) => state.index.dropUnusedSince(Number.POSITIVE_INFINITY));
    await compose("r2");
    const stored = await other?.use(user(0), ({ state }) => state.stored());
    expect(await one?.use(user(0), ({ state }) => state.stored())).toEqual(stored);
  });

  it("know which requests are under way, also where they are dropped from memory in between", async () => {
    const { store, scopes } = openScopes(1);
    const users = new ComposedUsers(store);
    for (const n of [0, 1]) await users.compose(user(n), { requestId: "a", question: "?", memories: {}, at: NOON });
    const [r1, r2] = ["r1" as RequestId, "r2" as RequestId];
    await scopes.use(user(0), ({ requests }) => requests.composed(r1, NOON));
    await scopes.use(user(0), ({ requests }) => requests.composed(r2, NOON + 5));
    const since = (at: number) => scopes.use(user(0), ({ requests }) => requests.since(at));
    expect([await since(NOON - 1), await since(NOON), await since(NOON + 5)]).toEqual([NOON, NOON + 5, null]);
    expect(await scopes.use(user(1), ({ requests }) => requests.since(0))).toBeNull();
    await scopes.use(user(0), ({ requests }) => requests.ended([r1]));
    expect(await since(NOON - 1)).toBe(NOON + 5);
  });

  it("are read once, and then nothing is read of them", async () => {
    let now = NOON;
    const { service, queries } = openCounted({ now: () => now });
    const history: { role: string; content: string }[] = [];
    for (let turn = 0; turn < 3; turn++) {
      // Nothing is under way any more.
      now += 3_600_000;
      const messages = [...history, { role: "user", content: `Question ${turn}` }];
      const options = { memories: memories({ m1: "Ana likes tea.", m2: `Fact ${turn}` }), messages, userId: "ana" };
      for (const conversationId of ["c", null]) await composeWith(service, { ...options, conversationId });
      if (turn === 0) expect(queries.splice(0)).not.toEqual([]);
      history.push(...messages.slice(-1), { role: "assistant", content: "I see." });
    }
    expect(queries).toEqual([]);
    await service.close();
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
});
