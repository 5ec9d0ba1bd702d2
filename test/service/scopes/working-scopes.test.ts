import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { DEFAULT_SCOPE_BOUNDS, type Scope, type UserId } from "../../../src/core/index.js";
import { WorkingScopes } from "../../../src/service/scopes/working-scopes.js";
import { StaleScopeError } from "../../../src/store/api/store.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { SqliteStore } from "../../../src/store/sqlite/sqlite-store.js";
import { ana, composeWith, memories, openService } from "../compose/service-fixture.js";

const directory = mkdtempSync(join(tmpdir(), "memstem-scopes-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const scopeOf = (n: number): Scope => ({ tenant: "default", userId: `user-${n}` as UserId, agentId: null });

describe("working scopes", () => {
  it("weigh no more than their bound, whoever asks, and drop the least recently used first", () => {
    const store = new SqliteStore(openDatabase(":memory:"));
    const scopes = new WorkingScopes(store, (text) => text.length, 50_000, DEFAULT_SCOPE_BOUNDS);
    for (let n = 0; n < 200; n++) {
      scopes.use(scopeOf(n), () => {});
      scopes.use(scopeOf(0), () => {});
      expect(scopes.weight).toBeLessThanOrEqual(50_000);
    }
    expect(scopes.size).toBeLessThan(30);
    const [hot, cold] = [0, 1].map((n) => {
      let state: unknown;
      scopes.use(scopeOf(n), (working) => {
        state = working.state;
      });
      return state;
    });
    scopes.use(scopeOf(0), ({ state }) => expect(state).toBe(hot));
    scopes.use(scopeOf(1), ({ state }) => expect(state).toBe(cold));
    store.close();
  });

  it("are loaded again after work on them threw, and work is repeated when another process was faster", () => {
    const store = new SqliteStore(openDatabase(":memory:"));
    const scopes = new WorkingScopes(store, (text) => text.length, 1_000_000, DEFAULT_SCOPE_BOUNDS);
    const seen = new Set<unknown>();
    expect(() =>
      scopes.use(scopeOf(0), ({ state }) => {
        seen.add(state);
        throw new Error("broken");
      }),
    ).toThrow("broken");
    let attempts = 0;
    scopes.use(scopeOf(0), ({ state }) => {
      seen.add(state);
      if (++attempts < 3) throw new StaleScopeError();
    });
    expect(attempts).toBe(3);
    expect(seen.size).toBe(4);
    store.close();
  });

  it("that are worked on in steps are loaded again in the same way, and weigh nothing once others were let go of them", async () => {
    const store = new SqliteStore(openDatabase(":memory:"));
    const scopes = new WorkingScopes(store, (text) => text.length, 1_000_000, DEFAULT_SCOPE_BOUNDS);
    let attempts = 0;
    const worked = scopes.useInSteps(scopeOf(0), async () => {
      await Promise.resolve();
      if (++attempts < 3) throw new StaleScopeError();
      scopes.clear();
      return "done";
    });
    await expect(worked).resolves.toBe("done");
    expect(attempts).toBe(3);
    expect([scopes.size, scopes.weight]).toEqual([0, 0]);
    await expect(scopes.useInSteps(scopeOf(0), () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    expect(scopes.size).toBe(0);
    store.close();
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
});
