import { describe, expect, it } from "vitest";
import { loadEveryUser } from "../../src/cli/stored-users.js";
import { EMPTY_SCOPE, type NodeId, ORDERING_POLICIES, type Scope, type TurnId } from "../../src/core/index.js";
import { IS_WHOLE } from "../run-length.js";
import { storedCounts } from "../stored-counts.js";
import { conversationId, loaded, NOW, requestId, type Said, scopeOf, storedOf } from "./composed-users.js";
import { describeConversations } from "./conversations.suite.js";
import { describeForgetting } from "./forgetting.suite.js";
import { describeKeys } from "./keys.suite.js";
import { type OpenDatabase, SuiteStore } from "./suite-database.js";
import { describeUsers } from "./users.suite.js";
import { describeWrites } from "./writes.suite.js";

const ana = scopeOf("ana");
const coach: Scope = { ...ana, agentId: "coach" as Scope["agentId"] };
const TEA: Said = {
  requestId: "r1",
  question: "What does she drink?",
  memories: { m1: "Ana likes tea.", m2: "Bo is a dog." },
};
/** Commits from one snapshot to the next. */
const BETWEEN_SNAPSHOTS = 64;

/** The behaviour of a store in any database. */
export function describeStore(name: string, open: OpenDatabase): void {
  describe(`store: ${name}`, () => {
    describeScopes(open);
    describeRequests(open);
    describeTwoHandles(open);
    describeConversations(open);
    describeForgetting(open);
    describeUsers(open);
    describeKeys(open);
    describeWrites(open);
  });
}

function describeScopes(open: OpenDatabase): void {
  describe("scopes", () => {
    const suite = new SuiteStore(open);

    it("are not stored until something is committed, and then come back as they were", async () => {
      const { store, users } = suite;
      expect(await store.find(ana)).toBeNull();
      expect(await storedOf(store, ana)).toEqual({ stored: EMPTY_SCOPE, version: null, userNumber: 0 });
      const number = await store.begin(ana, NOW);
      expect(await store.find(ana)).toBeNull();
      expect(await storedOf(store, ana)).toMatchObject({ stored: EMPTY_SCOPE, userNumber: number });
      await users.compose(ana, { ...TEA, conversation: "c" });
      const { stored, version, userNumber } = await storedOf(store, ana);
      expect(stored).toEqual(users.state(ana)?.stored());
      expect([userNumber, version?.version, version?.snapshotVersion]).toEqual([number, 1, 0]);
      expect(await store.find(ana)).toBe(version?.scopeId);
      expect(stored?.register.blocks.map(({ label, text }) => [label, text])).toEqual([
        [1, "Ana likes tea."],
        [2, "Bo is a dog."],
      ]);
    });

    it("are folded from what each commit changed, and from a snapshot now and then", async () => {
      const { store, users } = suite;
      let at = 0;
      for (const policy of Object.values(ORDERING_POLICIES))
        for (let n = 0; n < (IS_WHOLE ? 22 : 10); n++) {
          at++;
          const memories = Object.fromEntries(
            [at % 9, at % 7, at % 5].map((one) => [`m${one}`, `Fact ${one}, ${at % 3}.`]),
          );
          const conversation = at % 4 === 0 ? {} : { conversation: `c${at % 3}` };
          await users.compose(ana, {
            requestId: `r${at}`,
            question: `Question ${at}?`,
            memories,
            policy,
            ...conversation,
          });
          if (at % 11 === 0) await users.report(ana, `r${at}`, { cachedTokens: at, promptTokens: 300 });
          if (at % 13 === 0) await users.evict(ana, [`r${at - 1}`]);
          const { stored, version } = await storedOf(store, ana);
          expect(stored).toEqual(users.state(ana)?.stored());
          const { length } = await suite.rows("changes", version?.scopeId);
          expect(length).toBe((version?.version ?? 0) % BETWEEN_SNAPSHOTS);
        }
      expect(at).toBeGreaterThan(BETWEEN_SNAPSHOTS);
      expect(await loadEveryUser(store)).toEqual({ users: 1, requests: at, findings: [] });
    });

    it("are apart: by tenant, user and agent", async () => {
      const { store, users } = suite;
      const scopes = [ana, scopeOf("bo"), scopeOf("ana", "acme"), coach];
      for (const [n, scope] of scopes.entries()) await users.compose(scope, { ...TEA, memories: { m1: `Text ${n}.` } });
      const numbers = await Promise.all(scopes.map((scope) => store.find(scope)));
      expect(new Set(numbers).size).toBe(4);
      for (const [n, scope] of scopes.entries()) {
        const { stored } = await storedOf(store, scope);
        expect(stored?.register.blocks.map(({ text }) => text)).toEqual([`Text ${n}.`]);
        expect(storedCounts(await store.exportUser(scope), scope.agentId).requests).toBe(1);
      }
      expect(await store.begin(coach, NOW)).toBe(await store.begin(ana, NOW));
      expect(await loadEveryUser(store)).toEqual({ users: 3, requests: 4, findings: [] });
    });

    it("are changed by no commit that fails", async () => {
      const { store, users } = suite;
      await users.compose(ana, TEA);
      const before = await storedOf(store, ana);
      await expect(
        store.hold(ana, null, async (held) => {
          const state = users.state(ana);
          if (state === undefined) throw new Error("it was composed");
          const record = await users.record(held, state, { ...TEA, requestId: "r2" });
          return held.commitCompose({
            ...record,
            composition: { ...record.composition, turn: { ...record.composition.turn, id: 1 as TurnId } },
          });
        }),
      ).rejects.toThrow();
      expect(await storedOf(store, ana)).toEqual(before);
      expect(await store.findServed(before.version?.scopeId ?? 0, requestId("r2"))).toBeNull();
    });
  });
}

function describeRequests(open: OpenDatabase): void {
  describe("requests", () => {
    const suite = new SuiteStore(open);

    it("are answered again from their turns", async () => {
      const { store, users } = suite;
      await users.compose(ana, { ...TEA, conversation: "c", worker: "north" });
      const { memories, plan, warnings, turn } = await users.compose(ana, {
        ...TEA,
        requestId: "r2",
        question: "And?",
        conversation: "c",
      });
      const scopeId = await users.numberOf(ana);
      const first = await store.findRequest(scopeId, requestId("r1"));
      expect(first?.answer.worker).toBe("north");
      const second = await store.findRequest(scopeId, requestId("r2"));
      expect(second?.answer).toMatchObject({ memories, plan, warnings });
      expect(JSON.stringify(second?.answer.plan)).toBe(JSON.stringify(plan));
      expect(second?.turns.at(-1)?.turn).toEqual(turn);
      expect(second?.head).toEqual([{ role: "system", content: "Be kind." }]);
      expect(second?.turns.map(({ given }) => given.map(({ content }) => content))).toEqual([
        [TEA.question],
        ["I see.", "And?"],
      ]);
      expect(second?.body).not.toBe(first?.body);
      expect(await store.findRequest(scopeId, requestId("r3"))).toBeNull();
      expect(await store.findRequest(scopeId + 1, requestId("r1"))).toBeNull();
    });

    it("that are composed again under an id that was used are found as they were last", async () => {
      const { store, users } = suite;
      for (const question of ["One?", "Two?"]) await users.compose(ana, { ...TEA, question });
      const found = await store.findRequest(await users.numberOf(ana), requestId("r1"));
      expect(found?.turns[0]?.given[0]?.content).toBe("Two?");
    });

    it("have what their engine reported, and whether it dropped them", async () => {
      const { store, users } = suite;
      await users.compose(ana, TEA);
      const scopeId = await users.numberOf(ana);
      const served = () => store.findServed(scopeId, requestId("r1"));
      expect(await served()).toMatchObject({ leaf: 2, turn: 1, at: NOW, evicted: false, observed: null });
      const observed = { promptTokens: 40, cachedTokens: 3, ttftMs: 1.5 };
      await users.report(ana, "r1", observed);
      expect((await served())?.observed).toEqual(observed);
      await users.report(ana, "r1", { cachedTokens: 0 });
      expect((await served())?.observed).toEqual({ cachedTokens: 0 });
      await users.evict(ana, ["r1"]);
      expect((await served())?.evicted).toBe(true);
      expect((await storedOf(store, ana)).stored).toEqual(users.state(ana)?.stored());
      expect(await store.findServed(scopeId, requestId("r2"))).toBeNull();
      expect(await store.findServed(scopeId + 1, requestId("r1"))).toBeNull();
    });

    it("are live until they are evicted, by their ids with every user of a tenant", async () => {
      const { store, users } = suite;
      for (const scope of [ana, scopeOf("bo"), scopeOf("cy", "acme")]) await users.compose(scope, TEA);
      await users.compose(coach, { ...TEA, requestId: "r2" });
      const live = async () =>
        (await store.findLiveRequests("default", ["r1", "r1", "r2", "nope"].map(requestId)))
          .map(({ scope, requestId: id }) => [scope.userId, scope.agentId, id])
          .sort();
      expect(await live()).toEqual([
        ["ana", null, "r1"],
        ["ana", "coach", "r2"],
        ["bo", null, "r1"],
      ]);
      await users.evict(ana, ["r1"]);
      expect(await live()).toEqual([
        ["ana", "coach", "r2"],
        ["bo", null, "r1"],
      ]);
      expect(storedCounts(await store.exportUser(ana)).live).toEqual([]);
    });

    it("are taken back with their turns, unless others go on from them", async () => {
      const { store, users } = suite;
      await users.compose(ana, { ...TEA, conversation: "c" });
      const scopeId = await users.numberOf(ana);
      const kept = await store.loadConversation(scopeId, conversationId("c"));
      const more: Said = { requestId: "r2", question: "And?", memories: {}, conversation: "c" };
      await users.compose(ana, more);
      await users.withdraw(ana, "r1");
      expect(await store.findRequest(scopeId, requestId("r1"))).toBeNull();
      expect(await store.findRequest(scopeId, requestId("r2"))).not.toBeNull();
      await users.withdraw(ana, "r2");
      expect(await store.loadConversation(scopeId, conversationId("c"))).toEqual(kept);
      expect(storedCounts(await store.exportUser(ana))).toMatchObject({ conversations: 1, turns: 1, requests: 0 });
      // Nothing has its number again.
      await users.compose(ana, more);
      expect((await store.findServed(scopeId, requestId("r2")))?.turn).toBe(3);
      await users.withdraw(ana, "r2");
      await users.compose(ana, { ...TEA, requestId: "single" });
      await users.withdraw(ana, "single");
      expect(storedCounts(await store.exportUser(ana))).toMatchObject({ conversations: 1, turns: 1, requests: 0 });
      await users.compose(ana, { ...TEA, requestId: "other", conversation: "d" });
      await users.withdraw(ana, "other");
      expect(storedCounts(await store.exportUser(ana))).toMatchObject({ conversations: 1, turns: 1, requests: 0 });
      expect(await suite.rows("prompts")).toEqual([]);
      expect((await storedOf(store, ana)).stored).toEqual(users.state(ana)?.stored());
    });

    it("are counted where they ended in one place since a turn, as far as is wanted", async () => {
      const { store, users } = suite;
      for (const name of ["r1", "r2", "r3"]) await users.compose(ana, { ...TEA, requestId: name });
      await users.compose(scopeOf("bo"), TEA);
      const scopeId = await users.numberOf(ana);
      const leaf = (await store.findServed(scopeId, requestId("r1")))?.leaf as NodeId;
      const since = (turn: number, most = 9) => store.countServedSince(scopeId, leaf, turn as TurnId, most);
      expect([await since(0), await since(1), await since(3), await since(0, 2)]).toEqual([3, 2, 0, 2]);
      expect(await store.countServedSince(scopeId, (leaf + 100) as NodeId, 0 as TurnId, 9)).toBe(0);
      await users.evict(ana, ["r2"]);
      expect([await since(0), await since(1), await since(2)]).toEqual([2, 1, 1]);
    });

    it("say which was reported last before a turn", async () => {
      const { store, users } = suite;
      for (const [n, name] of ["r1", "r2", "r3"].entries())
        await users.compose(ana, { ...TEA, requestId: name, at: NOW + n });
      const scopeId = await users.numberOf(ana);
      const reportedBefore = (turn: number) => store.findReportedBefore(scopeId, turn as TurnId);
      expect(await reportedBefore(3)).toBeNull();
      await users.report(ana, "r1", { cachedTokens: 3 });
      await users.report(ana, "r2", { ttftMs: 3 });
      expect(await reportedBefore(3)).toEqual(await store.findServed(scopeId, requestId("r1")));
      expect(await reportedBefore(1)).toBeNull();
    });

    it("know their workers", async () => {
      const { store, users } = suite;
      await users.compose(ana, { ...TEA, worker: "north" });
      await users.compose(ana, { ...TEA, requestId: "r2" });
      const scopeId = await users.numberOf(ana);
      expect(await Promise.all([1, 2, 3].map((turn) => store.findWorker(scopeId, turn as TurnId)))).toEqual([
        "north",
        null,
        null,
      ]);
    });

    it("are found with the prompt that they continued", async () => {
      const { store, users } = suite;
      await users.compose(ana, { ...TEA, conversation: "c" });
      await users.compose(ana, { ...TEA, requestId: "r2" });
      await users.compose(ana, { ...TEA, requestId: "r3", question: "And?", conversation: "c" });
      await users.compose(ana, { ...TEA, requestId: "r4" });
      await users.compose(ana, { ...TEA, requestId: "r5", question: "Another?", conversation: "c", history: [] });
      const scopeId = await users.numberOf(ana);
      const continued = async (name: string) =>
        (await store.findContinued(scopeId, requestId(name)))?.continued?.requestId ?? null;
      expect(await Promise.all(["r1", "r2", "r3", "r4", "r5"].map(continued))).toEqual([null, null, "r1", "r2", "r3"]);
      await users.report(ana, "r3", { promptTokens: 40, cachedTokens: 3 });
      await users.evict(ana, ["r3"]);
      const found = await store.findContinued(scopeId, requestId("r3"));
      expect(found?.prompt).toMatchObject({
        requestId: "r3",
        at: NOW,
        evicted: true,
        report: { promptTokens: 40, cachedTokens: 3 },
      });
      expect(found?.prompt.turns.map(({ given }) => given?.length)).toEqual([1, 2]);
      expect(found?.prompt.head).toEqual([{ role: "system", content: "Be kind." }]);
      expect(await store.findContinued(scopeId, requestId("none"))).toBeNull();
    });

    it("are found by their engine's responses, the newest of an engine's conversation", async () => {
      const { store, users } = suite;
      for (const name of ["r1", "r2"]) await users.compose(ana, { ...TEA, requestId: name });
      await users.compose(scopeOf("bo"), TEA);
      const scopeId = await users.numberOf(ana);
      const find = (id: string) => store.findResponse(scopeId, id);
      await store.keepResponse(scopeId, requestId("none"), "resp-0", "conv");
      expect([await find("resp-0"), await find("conv")]).toEqual([null, null]);
      await store.keepResponse(scopeId, requestId("r1"), "resp-1", "conv");
      await store.keepResponse(scopeId, requestId("r2"), "resp-2", "conv");
      expect([await find("resp-1"), await find("resp-2"), await find("conv")]).toEqual(["r1", "r2", "r2"]);
      expect(await store.findResponse(await users.numberOf(scopeOf("bo")), "resp-1")).toBeNull();
      await users.withdraw(ana, "r2");
      expect([await find("resp-2"), await find("conv")]).toEqual([null, "r1"]);
    });
  });
}

function describeTwoHandles(open: OpenDatabase): void {
  describe("two stores on one database", () => {
    const suite = new SuiteStore(open);

    it("each get what the other has committed since", async (context) => {
      const { users, store } = suite;
      const other = await suite.other(context);
      await users.compose(ana, { ...TEA, conversation: "c" });
      await other.compose(ana, { ...TEA, requestId: "r2", question: "And?", conversation: "c" });
      expect((await storedOf(store, ana)).stored).toEqual(other.state(ana)?.stored());
      for (let n = 3; n < 150; n++)
        await other.compose(ana, { ...TEA, requestId: `r${n}`, memories: { [`m${n}`]: `Fact ${n}.` } });
      const behind = users.state(ana);
      const known = await other.store.hold(ana, null, async ({ version, userNumber }) => ({ version, userNumber }));
      const stale = {
        version: { ...(known.version ?? neverHere()), version: 1, snapshotVersion: 0 },
        userNumber: known.userNumber,
        stored: () => behind?.stored() ?? EMPTY_SCOPE,
      };
      const newer = (of: typeof stale) => other.store.hold(ana, of, async (held) => held.newer && loaded(held.newer));
      expect(await newer(stale)).toEqual(other.state(ana)?.stored());
      const current = { ...stale, version: known.version ?? neverHere() };
      expect(await newer(current)).toBeNull();
      // A server that lost its last commits, as a standby that took over.
      const lost = { ...current, version: { ...current.version, version: current.version.version + 1 } };
      expect(await newer(lost)).toEqual(other.state(ana)?.stored());
    });

    it("each learn of a memory that the other has forgotten, and of a user who was deleted and came back", async (context) => {
      const { users } = suite;
      const other = await suite.other(context);
      await other.compose(ana, TEA);
      await other.store.begin(coach, NOW);
      const begun = await other.store.hold(coach, null, async ({ version, userNumber }) => ({
        version: version ?? neverHere(),
        userNumber,
        stored: () => EMPTY_SCOPE,
      }));
      await users.forget(ana, "m1");
      const { plan } = await other.compose(ana, { ...TEA, requestId: "r2" });
      expect(plan.totalTokens).toBeGreaterThan(0);
      expect(other.state(ana)?.register.stored().forgotten).toEqual(["m1"]);
      expect(
        other
          .state(ana)
          ?.register.stored()
          .blocks.map(({ text }) => text),
      ).toEqual(["Bo is a dog."]);
      const forgotten = await other.store.hold(coach, begun, async (held) => held.newer?.register.forgotten);
      expect(forgotten).toEqual(["m1"]);
      await users.deleteUser(ana);
      await users.compose(ana, { ...TEA, memories: { m1: "Ana likes tea again." } });
      const before = begun.userNumber;
      await other.compose(ana, { ...TEA, requestId: "r3" });
      expect(
        other
          .state(ana)
          ?.register.stored()
          .blocks.map(({ text }) => text),
      ).toEqual(["Ana likes tea again.", "Ana likes tea.", "Bo is a dog."]);
      expect(await other.store.begin(ana, NOW)).not.toBe(before);
    });
  });
}

function neverHere(): never {
  throw new Error("nothing was stored");
}
