import { describe, expect, it } from "vitest";
import { NOW, requestId, type Said, scopeOf } from "./composed-users.js";
import { type OpenDatabase, SuiteStore } from "./suite-database.js";

const ana = scopeOf("ana");
const bo = scopeOf("bo");
const TEA: Said = { requestId: "r1", question: "What does she drink?", memories: { m1: "Ana likes tea." } };

/** Exchanges that wait for the memory source. */
export function describeWrites(open: OpenDatabase): void {
  describe("exchanges that wait", () => {
    const suite = new SuiteStore(open);
    const keep = async (text: string, queue = "", request: string | null = null, scope = ana, at = NOW) => {
      await suite.store.begin(scope, at);
      const of = { queue, addition: { messages: [text] }, exchanges: 1, requestId: request && requestId(request), at };
      const kept = await suite.store.writes.keep(scope, of as never);
      if (kept === null) throw new Error("it was not kept");
      return kept;
    };
    const texts = async () => {
      const rows = (await suite.rows("writes")).sort((a, b) => Number(a["id"]) - Number(b["id"]));
      return rows.map(({ addition }) => (JSON.parse(String(addition)) as { messages: string[] }).messages[0]);
    };

    it("are due when so many wait or when idle, are held by one, and come in order", async (context) => {
      const { writes } = suite.store;
      for (const n of [1, 2, 3]) await keep(`a${n}`, "a");
      await keep("b1", "b", null, bo, NOW - 9);
      const due = (idleSince = 0) => writes.due(NOW, 4, idleSince);
      expect(await due()).toEqual([]);
      expect((await due(NOW - 9)).map(({ scope, queue }) => [scope, queue])).toEqual([[bo, "b"]]);
      const a = await keep("a4", "a");
      expect(a.waiting).toBe(4);
      expect((await due()).map(({ queue }) => queue)).toEqual(["a"]);
      const other = (await suite.other(context)).store.writes;
      const claims = await Promise.all([writes, other, writes, other].map((one) => one.claim(a, NOW, NOW + 10)));
      expect(claims.filter((isHeld) => isHeld)).toHaveLength(1);
      expect(await due()).toEqual([]);
      const first = await writes.first(a, 2);
      expect(first.map(({ addition }) => addition)).toEqual([{ messages: ["a1"] }, { messages: ["a2"] }]);
      // The holder died.
      expect(await other.claim(a, NOW + 10, NOW + 20)).toBe(true);
      await other.remove(a, first[1]?.id ?? 0);
      expect(await texts()).toEqual(["a3", "b1", "a4"]);
      expect(await writes.claim(a, NOW, NOW + 10)).toBe(true);
      await writes.unhold(a);
      expect(await writes.claim(a, NOW, NOW + 10)).toBe(true);
    });

    it("make their user one who is listed and exported, and go with it", async () => {
      const { store, users } = suite;
      await keep("hello", "conversation trip");
      await keep("hi", "", null, bo);
      expect((await store.users(0)).users.map(({ userId }) => userId)).toEqual(["ana", "bo"]);
      const { scopes } = await store.exportUser(ana);
      expect(scopes[0]?.tables["writes"]).toMatchObject([
        { queue: "conversation trip", turn_id: null, exchanges: 1, addition: { messages: ["hello"] } },
      ]);
      await users.deleteUser(ana);
      expect(await texts()).toEqual(["hi"]);
    });

    it("go with a forgotten memory where they say it or answer a prompt that had it", async () => {
      const { users } = suite;
      await users.compose(ana, TEA);
      await users.compose(ana, { ...TEA, requestId: "r2", memories: {} });
      await keep("She drinks what she likes.", "", "r1");
      await keep("She drinks water.", "", "r2");
      await keep('Is it true: "Ana likes tea."?');
      await users.forget(ana, "m1");
      expect(await texts()).toEqual(["She drinks water."]);
      await expect(keep("late", "", "r1")).rejects.toThrow("not kept");
    });

    it("expire by their own time, and keep their user", async () => {
      const { users } = suite;
      await users.compose(ana, TEA);
      await keep("old");
      await keep("new", "", null, ana, NOW + 10);
      expect((await suite.store.usersWithOldTurns(NOW + 5, 0)).users).toHaveLength(1);
      expect(await users.expire(ana, NOW + 5)).toBe(2);
      expect(await texts()).toEqual(["new"]);
      expect((await suite.store.users(0)).users).toHaveLength(1);
    });
  });
}
