import { describe, expect, it } from "vitest";
import type { MemoryId, Scope } from "../../src/core/index.js";
import type { Store, User, UsersFound } from "../../src/store/store.js";
import { storedCounts } from "../stored-counts.js";
import { memoryId, NOW, requestId, type Said, scopeOf, storedOf } from "./composed-users.js";
import { type OpenDatabase, SuiteStore } from "./suite-database.js";

const ana = scopeOf("ana");
const bo = scopeOf("bo");
const coach: Scope = { ...ana, agentId: "coach" as Scope["agentId"] };
const TEA: Said = { requestId: "r1", question: "What does she drink?", memories: { m1: "Ana likes tea." } };
/** Users on a page of a walk. */
const PAGE = 100;

type Cursor = number | string;

async function walked(
  page: (after: never) => Promise<UsersFound<Cursor>>,
  begin: Cursor = 0,
): Promise<readonly string[]> {
  const found: User[] = [];
  for (let after: Cursor | null = begin; after !== null; ) {
    const { users, next }: UsersFound<Cursor> = await page(after as never);
    expect(users.length).toBeLessThanOrEqual(PAGE);
    found.push(...users);
    after = next;
  }
  return found.map(({ tenant, userId }) => `${tenant}/${userId}`);
}

/** What is done with users as a whole. */
export function describeUsers(open: OpenDatabase): void {
  describe("a deleted user", () => {
    const suite = new SuiteStore(open);

    it("is gone with every agent, and others stay", async () => {
      const { store, users } = suite;
      for (const scope of [ana, coach, bo, scopeOf("ana", "acme")])
        await users.compose(scope, {
          ...TEA,
          conversation: "c",
          memories: { m1: `${scope.userId} of ${scope.tenant} likes tea.` },
        });
      const before = await store.begin(ana, NOW);
      expect(await users.deleteUser(ana)).toBe(2);
      expect(await suite.placesOf("ana of default")).toEqual([]);
      expect(await store.find(ana)).toBeNull();
      expect(await store.scopesOf(ana)).toEqual([]);
      for (const table of ["changes", "conversations", "turns", "requests", "prompts"] as const)
        expect(await suite.rows(table), table).toHaveLength(2);
      expect(await store.scopesOf(bo)).toEqual([bo]);
      expect(await users.deleteUser(ana)).toBe(0);
      expect(await users.deleteUser(scopeOf("nobody"))).toBe(0);
      // Who comes back is another user.
      await users.compose(ana, TEA);
      expect(await store.begin(ana, NOW)).toBeGreaterThan(before);
      expect((await storedOf(store, ana)).stored?.counters.nextTurn).toBe(2);
    });

    it("has nothing that is never sent again", async () => {
      const { store, users } = suite;
      await users.compose(ana, TEA);
      await users.forget(ana, "m1");
      await users.deleteUser(ana);
      const { memories } = await users.compose(ana, TEA);
      expect(memories.map((memory) => memory.memoryId)).toEqual(["m1"]);
      expect((await storedOf(store, ana)).stored?.register.forgotten).toEqual([]);
    });
  });

  describe("what the memory source has yet to delete", () => {
    const suite = new SuiteStore(open);
    const pending = () => walked((after) => suite.store.usersPendingInSource(after));
    const forget = (memory: string, isInSource = true) =>
      suite.store.forget(ana, memoryId(memory), { texts: [], isInSource, at: NOW });

    it("is kept memory by memory until it has", async () => {
      const { store, users } = suite;
      expect([await store.pendingInSource(ana), await pending()]).toEqual([null, []]);
      await users.compose(ana, TEA);
      await forget("m1", false);
      expect(await store.pendingInSource(ana)).toBeNull();
      for (const memory of ["m1", "m2", "m1"]) await forget(memory);
      expect(await store.pendingInSource(ana)).toEqual({ everything: false, memoryIds: ["m1", "m2"] });
      expect(await pending()).toEqual(["default/ana"]);
      expect(await store.pendingInSource(scopeOf("ana", "acme"))).toBeNull();
      await store.deletedFromSource(ana, memoryId("m1"));
      await store.deletedFromSource(ana, memoryId("m9"));
      expect(await store.pendingInSource(ana)).toEqual({ everything: false, memoryIds: ["m2"] });
      await store.deletedFromSource(ana, memoryId("m2"));
      await store.deletedFromSource(bo, memoryId("m2"));
      expect([await store.pendingInSource(ana), await pending()]).toEqual([null, []]);
      expect((await storedOf(store, ana)).stored?.register.forgotten.toSorted()).toEqual(["m1", "m2"]);
    });

    it("is everything of a deleted user, who is gone when it is done", async () => {
      const { store, users } = suite;
      await users.compose(coach, TEA);
      await forget("m1");
      expect(await store.deleteUser(ana, true, NOW)).toBe(1);
      expect(await store.pendingInSource(ana)).toEqual({ everything: true, memoryIds: [] });
      expect(await pending()).toEqual(["default/ana"]);
      expect(await walked((after) => store.users(after))).toEqual([]);
      await store.deletedFromSource(ana, memoryId("m1"));
      expect(await store.pendingInSource(ana)).toEqual({ everything: true, memoryIds: [] });
      await store.deletedFromSource(ana, null);
      expect(await store.pendingInSource(ana)).toBeNull();
      expect(await suite.rows("scopes")).toEqual([]);
    });

    it("is still known where the user came back meanwhile, who stays", async () => {
      const { store, users } = suite;
      await users.compose(ana, TEA);
      await store.deleteUser(ana, true, NOW);
      users.drop();
      // No memory that the source may still give is stored.
      await users.compose(ana, { ...TEA, memories: {} });
      expect(await store.pendingInSource(ana)).toEqual({ everything: true, memoryIds: [] });
      await forget("m1");
      await store.deletedFromSource(ana, null);
      expect(await store.pendingInSource(ana)).toEqual({ everything: false, memoryIds: ["m1"] });
      await store.deletedFromSource(ana, memoryId("m1"));
      expect(storedCounts(await store.exportUser(ana)).requests).toBe(1);
    });

    it("is of a user who was never composed for, too", async () => {
      await suite.store.deleteUser(ana, true, NOW);
      expect(await suite.store.pendingInSource(ana)).toEqual({ everything: true, memoryIds: [] });
    });
  });

  describe("an export", () => {
    const suite = new SuiteStore(open);

    it("has every row of the user's scopes, and nothing of anyone else's", async () => {
      const { store, users } = suite;
      await users.compose(ana, { ...TEA, conversation: "c" });
      await users.compose(ana, {
        ...TEA,
        requestId: "r2",
        question: "And?",
        conversation: "c",
        memories: { m2: "Bo is a dog." },
      });
      await users.report(ana, "r1", { cachedTokens: 3 });
      await store.keepResponse(await users.numberOf(ana), requestId("r1"), "resp-1", "conv");
      await users.compose(coach, { ...TEA, requestId: "r3" });
      await users.compose(bo, { ...TEA, memories: { m1: "Bo's own." } });
      await users.forget(ana, "m9");
      const { scopes, forgottenMemories } = await store.exportUser(ana);
      expect(forgottenMemories).toEqual(["m9"]);
      expect(scopes.map(({ agentId }) => agentId)).toEqual([null, "coach"]);
      const tables = scopes[0]?.tables ?? {};
      expect(tables["blocks"]?.map((row) => [row["label"], row["text"]])).toEqual([
        [1, "Ana likes tea."],
        [2, "Bo is a dog."],
      ]);
      expect(tables["memories"]?.map((row) => row["memory_id"])).toEqual(["m1", "m2"]);
      expect(tables["conversations"]).toEqual([{ id: "c", used_at: NOW, forgotten_at: null, sent_after: null }]);
      expect(tables["turns"]).toMatchObject([
        {
          id: 1,
          conversation_id: "c",
          at: NOW,
          section: expect.stringContaining("Ana likes tea."),
          response_id: "resp-1",
          engine_conversation: "conv",
        },
        { id: 2, section: expect.stringContaining("Bo is a dog."), response_id: null },
      ]);
      expect(tables["messages"]?.map(({ message }) => message)).toEqual(
        expect.arrayContaining([
          [{ role: "system", content: "Be kind." }],
          { role: "user", content: TEA.question },
          { role: "assistant", content: "I see." },
          { role: "user", content: "And?" },
        ]),
      );
      expect(tables["requests"]).toMatchObject([
        { turn_id: 1, id: "r1", answer: { warnings: [] }, report: { cachedTokens: 3 }, evicted: 0 },
        { turn_id: 2, id: "r2", report: null },
      ]);
      expect(tables["prompts"]).toMatchObject([{ request_id: "r1", model: "gpt" }, { request_id: "r2" }]);
      expect(tables["index_nodes"]?.length).toBeGreaterThan(1);
      expect(JSON.stringify(scopes)).not.toContain("Bo's own.");
      expect(await store.exportUser(scopeOf("nobody"))).toEqual({ scopes: [], forgottenMemories: [] });
    });
  });

  describe("a walk", () => {
    const suite = new SuiteStore(open);
    const COUNT = 2 * PAGE + 10;
    const everyone = Array.from({ length: COUNT }, (_, n) => scopeOf(`user-${n}`, n % 3 === 0 ? "acme" : "default"));
    const nameOf = ({ tenant, userId }: User) => `${tenant}/${userId}`;
    const fill = (store: Store, users: SuiteStore["users"]) =>
      Promise.all(
        everyone.map(async (scope, n) => {
          if (n % 10 === 9) return store.begin(scope, NOW);
          const memories = { [`m${n % 7}`]: `Fact ${n}.`, [`m${n}x`]: "Another." };
          const agent = n % 5 === 0 ? { ...scope, agentId: "coach" as Scope["agentId"] } : scope;
          const conversation = n % 2 === 0 ? {} : { conversation: "c" };
          return users.compose(agent, { ...TEA, memories, at: NOW + n, ...conversation });
        }),
      );

    it("passes every user, those with a memory, with old turns, and with pending deletions, page by page", async () => {
      const { store, users } = suite;
      await fill(store, users);
      const stored = everyone.filter((_, n) => n % 10 !== 9);
      expect((await walked((after) => store.users(after))).toSorted()).toEqual(stored.map(nameOf).toSorted());
      const withMemory = (tenant: string, memory: string) =>
        walked((after) => store.usersWithMemory(tenant, memory as MemoryId, after), "");
      const holders = everyone.filter((scope, n) => n % 7 === 3 && n % 10 !== 9 && scope.tenant === "default");
      expect((await withMemory("default", "m3")).toSorted()).toEqual(holders.map(nameOf).toSorted());
      expect(await withMemory("default", "m")).toEqual([]);
      expect(await withMemory("other", "m3")).toEqual([]);
      const old = everyone.filter((_, n) => n < 150 && n % 10 !== 9);
      const oldOnes = await walked((after) => store.usersWithOldTurns(NOW + 150, after));
      expect(oldOnes.toSorted()).toEqual(old.map(nameOf).toSorted());
      expect(await walked((after) => store.usersWithOldTurns(NOW, after))).toEqual([]);
      const [first, last] = [everyone[1] ?? ana, everyone.at(-2) ?? ana];
      for (const user of [last, first]) await store.deleteUser(user, true, NOW);
      expect((await walked((after) => store.usersPendingInSource(after))).toSorted()).toEqual(
        [first, last].map(nameOf).toSorted(),
      );
    });

    it("finds a memory in a snapshot, and in what came after it, until it is forgotten", async () => {
      const { store, users } = suite;
      for (let n = 0; n < 70; n++)
        await users.compose(ana, { ...TEA, requestId: `r${n}`, memories: { [`m${n}`]: `Fact ${n}.` } });
      const holders = (memory: string) => store.usersWithMemory("default", memory as MemoryId, "");
      const found = { users: [{ tenant: "default", userId: "ana" }], next: null };
      for (const memory of ["m0", "m63", "m69"]) expect(await holders(memory)).toEqual(found);
      await users.forget(ana, "m0");
      expect(await holders("m0")).toEqual({ users: [], next: null });
      expect(await holders("m69")).toEqual(found);
    });
  });
}
