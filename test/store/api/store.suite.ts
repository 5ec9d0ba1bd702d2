import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type ConversationId,
  digestOf,
  EMPTY_SCOPE,
  type Label,
  type MemoryId,
  type NodeId,
  type TurnId,
  type UserId,
} from "../../../src/core/index.js";
import { loadEveryUser } from "../../../src/store/api/load-users.js";
import { type EngineReport, StaleScopeError, type Store } from "../../../src/store/api/store.js";
import { allOf, composeInto, deltaOf, id, recordFor, scopeOf, stateOf } from "./stored-compose.js";

const ana = scopeOf("ana");
const TEA = {
  requestId: "r1",
  question: "What does she drink?",
  memories: { m1: "Ana likes tea.", m2: "Bo is a dog." },
};

/** The behaviour of every store. */
export function describeStore(name: string, open: () => Store | Promise<Store>): void {
  describe(`store: ${name}`, () => {
    let store: Store;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    it("knows nothing of a scope that was never committed", async () => {
      const deletions = { users: 0, memories: 0 };
      expect(await store.loadScope(ana)).toMatchObject({ scope: EMPTY_SCOPE, version: null, deletions });
      expect(await store.findRequest(ana, id("r1"))).toBeNull();
      expect(await store.loadConversation(ana, "c" as ConversationId)).toEqual([]);
      expect(await store.counts(ana)).toEqual({ conversations: 0, turns: 0, requests: 0 });
    });

    it("gives back what was committed", async () => {
      await composeInto(store, ana, { ...TEA, conversationId: "c" });
      const { scope, version } = await store.loadScope(ana);
      expect(version?.commits).toBe(1);
      expect(scope.counters).toEqual({ nextLabel: 3, nextNode: 3, nextTurn: 2, requests: 1 });
      expect(scope.register.blocks.map(({ label, text }) => [label, text])).toEqual([
        [1, "Ana likes tea."],
        [2, "Bo is a dog."],
      ]);
      expect(scope.register.versions).toHaveLength(2);
      expect(scope.nodes.map(({ run }) => run)).toEqual([[], [1, 2]]);
      const [turn] = await store.loadConversation(ana, "c" as ConversationId);
      const found = await store.findRequest(ana, id("r1"));
      expect(found?.turns).toEqual([{ turn, given: [{ role: "user", content: TEA.question }] }]);
      expect(found?.head).toEqual([{ role: "system", content: "Be kind." }]);
      expect(found?.answer.memories.map(({ memoryId }) => memoryId)).toEqual(["m1", "m2"]);
      expect(await store.counts(ana)).toEqual({ conversations: 1, turns: 1, requests: 1 });
    });

    describe("responses", () => {
      const keep = async (of: typeof ana, name: string, request: string, continued: string | null = null, most = 10) =>
        store.keepResponse(of, await store.deletionsOf(of.tenant, of.userId), name, id(request), continued, most);

      it("are found by their ids in their own scope, as they were kept last", async () => {
        await composeInto(store, ana, { ...TEA, conversationId: "c" });
        await composeInto(store, ana, { ...TEA, requestId: "r2", conversationId: "c" });
        await keep(ana, "a", "r1");
        await keep(ana, "a", "r2");
        expect(await store.findResponse(ana, "a")).toBe("r2");
        expect(await store.findResponse(ana, "b")).toBeNull();
        await composeInto(store, scopeOf("bo"), TEA);
        for (const other of [scopeOf("bo"), scopeOf("nobody")]) expect(await store.findResponse(other, "a")).toBeNull();
      });

      it("are not kept without their request, and go with it", async () => {
        await keep(ana, "a", "r1");
        await composeInto(store, ana, TEA);
        expect(await store.findResponse(ana, "a")).toBeNull();
        await keep(ana, "a", "r1");
        const { state, base } = await stateOf(store, ana);
        await store.commitWithdrawal(ana, base, deltaOf(state), 1 as TurnId);
        expect(await store.findResponse(ana, "a")).toBeNull();
      });

      it("of one tenant are bounded; the least recently used go first", async () => {
        await composeInto(store, ana, TEA);
        const other = scopeOf("ana", "other");
        await composeInto(store, other, TEA);
        await keep(other, "theirs", "r1", null, 5);
        for (let at = 0; at < 64; at++) await keep(ana, `${at}`, "r1", at < 60 ? null : "3", 5);
        const kept: number[] = [];
        for (let at = 0; at < 64; at++) if ((await store.findResponse(ana, `${at}`)) !== null) kept.push(at);
        expect(kept).toEqual([3, 60, 61, 62, 63]);
        expect(await store.findResponse(other, "theirs")).not.toBeNull();
      });

      it("are told apart by the memories that their prompts were given, in any of their turns", async () => {
        const inConversation = { conversationId: "c", memories: { m1: "Ana likes tea." } };
        await composeInto(store, ana, { ...TEA, ...inConversation });
        const history = [TEA.question, "Tea."];
        const later = { ...inConversation, requestId: "r2", question: "And milk?", history };
        await composeInto(store, ana, { ...later, memories: { m2: "Bo is a dog." } });
        const longer = { requestId: "r4", question: "Why?", history: [...history, "And milk?", "No."], memories: {} };
        await composeInto(store, ana, { ...inConversation, ...longer });
        await composeInto(store, ana, { ...later, requestId: "r3", conversationId: "d", memories: { m3: "Fog." } });
        for (const [name, request] of Object.entries({ a: "r1", b: "r2", c: "r3", d: "r4" }))
          await keep(ana, name, request);
        const given = async (...labels: number[]) => store.responsesGiven(ana, new Set(labels as Label[]));
        expect(await given(1)).toEqual({ given: ["a", "b", "d"], others: ["c"] });
        expect(await given(2)).toEqual({ given: ["b", "d"], others: ["a", "c"] });
        expect(await given(3, 4)).toEqual({ given: ["c"], others: ["a", "b", "d"] });
        expect(await given()).toEqual({ given: [], others: ["a", "b", "c", "d"] });
        expect(await store.responsesGiven(scopeOf("bo"), new Set([1 as Label]))).toEqual({ given: [], others: [] });
      });
    });

    it("finds the whole path of turns for a later request of a conversation", async () => {
      await composeInto(store, ana, { ...TEA, conversationId: "c" });
      const history = [TEA.question, "Tea."];
      await composeInto(store, ana, {
        requestId: "r2",
        question: "And?",
        memories: { m1: "Ana likes tea." },
        conversationId: "c",
        history,
      });
      const found = await store.findRequest(ana, id("r2"));
      expect(found?.turns.map(({ given }) => given.map(({ content }) => content))).toEqual([
        [TEA.question],
        ["Tea.", "And?"],
      ]);
      expect(
        (await store.loadConversation(ana, "c" as ConversationId)).map(({ id: turn, parent }) => [turn, parent]),
      ).toEqual([
        [1, null],
        [2, 1],
      ]);
    });

    it("refuses a commit on a version that is not the stored one, and changes nothing", async () => {
      const first = await recordFor(store, ana, TEA);
      const rival = await recordFor(store, ana, { ...TEA, requestId: "r2", memories: { m9: "Something else." } });
      await store.commitCompose(ana, first.base, first.record);
      const before = await allOf(store, ana);
      await expect(store.commitCompose(ana, rival.base, rival.record)).rejects.toThrow(StaleScopeError);
      expect(await allOf(store, ana)).toEqual(before);
      expect(await store.findRequest(ana, id("r2"))).toBeNull();
      const { state, base } = await stateOf(store, ana);
      const older = { ...base, version: { ...(base.version ?? neverHere()), commits: 0 } };
      await expect(store.commitEviction(ana, older, deltaOf(state), [])).rejects.toThrow(StaleScopeError);
    });

    it("refuses a commit where the user, or a memory of theirs, was deleted since it was planned, also of a scope that was never stored", async () => {
      const { base, record } = await recordFor(store, ana, TEA);
      await store.deleteUser("default", "ana" as UserId, false);
      await expect(store.commitCompose(ana, base, record)).rejects.toThrow(StaleScopeError);
      expect((await store.loadScope(ana)).version).toBeNull();
      const deletions = await store.deletionsOf("default", "ana" as UserId);
      await store.commitCompose(ana, { ...base, deletions }, record);
      await store.keepResponse(ana, base.deletions, "a", id("r1"), null, 10);
      expect(await store.findResponse(ana, "a")).toBeNull();
    });

    it("takes commits of many scopes that are handed over together, and rejects only those that are stale", async () => {
      const users = Array.from({ length: 40 }, (_, n) => scopeOf(`user-${n}`));
      const planned = await Promise.all(users.map((user) => recordFor(store, user, TEA)));
      const rivals = await Promise.all(users.map((user) => recordFor(store, user, { ...TEA, requestId: "r2" })));
      const commits: Promise<unknown>[] = [];
      for (const [n, user] of users.entries())
        for (const one of n % 2 === 0 ? [planned[n], rivals[n]] : [planned[n]])
          if (one !== undefined) commits.push(store.commitCompose(user, one.base, one.record));
      const outcomes = await Promise.allSettled(commits);
      expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(20);
      await store.idle();
      for (const user of users) expect((await store.counts(user)).requests).toBe(1);
    });

    it("does not take a user who came back for the one that was deleted", async () => {
      const version = await composeInto(store, ana, TEA);
      await store.deleteUser("default", "ana" as UserId, false);
      const again = await composeInto(store, ana, TEA);
      expect(again.scopeId).not.toBe(version.scopeId);
      const { base, record } = await recordFor(store, ana, { ...TEA, requestId: "r2" });
      await expect(store.commitCompose(ana, { ...base, version }, record)).rejects.toThrow(StaleScopeError);
    });

    it("gives what was said in a conversation up to its newest turn, and nothing of another's", async () => {
      const said = (of = ana, conversation = "c") => store.findHistory(of, conversation as ConversationId);
      expect(await said()).toBeNull();
      const asked = { ...TEA, conversationId: "c" };
      await composeInto(store, ana, asked);
      const history = [TEA.question, "Green."];
      await composeInto(store, ana, { ...asked, requestId: "r2", history, question: "Why?" });
      const messages = [TEA.question, "Green.", "Why?"].map((content, at) => ({
        role: at % 2 === 0 ? "user" : "assistant",
        content,
      }));
      const head = [{ role: "system", content: "Be kind." }];
      expect(await said()).toEqual({
        head,
        messages,
        newest: 2,
        isWhole: true,
        prompts: [
          { total: expect.any(Number), computed: expect.any(Number) },
          { total: expect.any(Number), computed: expect.any(Number) },
        ],
        hasOwnHead: false,
        behind: null,
      });
      await composeInto(store, ana, { ...asked, requestId: "r3", question: "Another?" });
      expect((await said())?.messages).toEqual([{ role: "user", content: "Another?" }]);
      expect([await said(scopeOf("bo")), await said(ana, "d"), await said(scopeOf("ana", "acme"))]).toEqual([
        null,
        null,
        null,
      ]);
    });

    it("says which version a scope is, and counts deletions of a user and of their memories by tenant", async () => {
      expect(await store.versionOf(ana)).toBeNull();
      const version = await composeInto(store, ana, TEA);
      expect(await store.versionOf(ana)).toEqual(version);
      const counts = (tenant: string, user: string) => store.deletionsOf(tenant, user as UserId);
      const others = async () => [await counts("acme", "ana"), await counts("default", "bo")];
      const [before, othersBefore] = [await counts("default", "ana"), await others()];
      await store.deleteUser("default", "ana" as UserId, false);
      expect(await store.versionOf(ana)).toBeNull();
      expect(await counts("default", "ana")).toEqual({ ...before, users: before.users + 1 });
      expect(await others()).toEqual(othersBefore);
    });

    it("keeps what a memory source has yet to delete until it has, a user's and one memory's", async () => {
      const user = "ana" as UserId;
      const memory = "m1" as MemoryId;
      const forget = async (isInSource: boolean) => {
        const { state, base } = await stateOf(store, ana);
        const gone = state.register.forget(memory);
        const record = {
          delta: deltaOf(state),
          memoryId: memory,
          gone,
          quotes: { texts: [], rendered: [], scopes: new Map() },
          sectionsOf: () => [],
          keptResponses: [],
          at: 1,
        };
        await store.commitForgetting(ana, base, { ...record, isInSource });
      };
      await forget(false);
      expect(await store.pendingInSource("default", user)).toBeNull();
      const before = await store.deletionsOf("default", user);
      await forget(true);
      await forget(true);
      expect(await store.deletionsOf("default", user)).toEqual({ ...before, memories: before.memories + 2 });
      expect(await store.pendingInSource("default", user)).toEqual({ everything: false, memoryIds: [memory] });
      await store.deleteUser("default", user, true);
      expect(await store.pendingInSource("default", user)).toEqual({ everything: true, memoryIds: [memory] });
      expect(await store.pendingInSource("acme", user)).toBeNull();
      expect(await store.usersPendingInSource()).toEqual([{ tenant: "default", userId: user }]);
      await store.deletedFromSource("default", user, null);
      expect(await store.pendingInSource("default", user)).toEqual({ everything: false, memoryIds: [memory] });
      await store.deletedFromSource("default", user, memory);
      expect(await store.usersPendingInSource()).toEqual([]);
    });

    it("keeps scopes apart: tenant, user and agent", async () => {
      const scopes = [ana, scopeOf("bo"), scopeOf("ana", "acme"), { ...ana, agentId: "coach" as never }];
      for (const [n, scope] of scopes.entries())
        await composeInto(store, scope, { ...TEA, memories: { m1: `Text ${n}.` } });
      for (const [n, scope] of scopes.entries()) {
        expect((await store.loadScope(scope)).scope.register.blocks.map(({ text }) => text)).toEqual([`Text ${n}.`]);
        expect((await store.counts(scope)).requests).toBe(1);
      }
      expect(await store.scopesOf("default", "ana" as UserId)).toHaveLength(2);
      const users = await store.usersAfter("", "");
      expect(users).toEqual([
        { tenant: "acme", userId: "ana" },
        { tenant: "default", userId: "ana" },
        { tenant: "default", userId: "bo" },
      ]);
      expect(await store.usersAfter("default", "ana")).toEqual(users.slice(2));
      expect(await loadEveryUser(store)).toEqual({ users: 3, requests: 4, findings: [] });
      expect(await store.deleteUser("default", "ana" as UserId, false)).toBe(2);
      expect((await store.loadScope(ana)).version).toBeNull();
      expect((await store.loadScope(scopes[1] ?? ana)).version).not.toBeNull();
      expect((await store.loadScope(scopes[2] ?? ana)).version).not.toBeNull();
    });

    it("names live requests by id across users of a tenant, until they are evicted", async () => {
      await composeInto(store, ana, TEA);
      await composeInto(store, scopeOf("bo"), TEA);
      await composeInto(store, scopeOf("ana", "acme"), TEA);
      const live = await store.findLiveRequests("default", [id("r1"), id("r1"), id("nope")]);
      expect(live.map(({ scope }) => scope.userId).sort()).toEqual(["ana", "bo"]);
      const { state, base } = await stateOf(store, ana);
      const ofAna = live.find(({ scope }) => scope.userId === "ana");
      expect(state.index.evict(ofAna?.leaf ?? (0 as never))).toBe(true);
      await store.commitEviction(ana, base, deltaOf(state), [id("r1")]);
      expect((await store.findLiveRequests("default", [id("r1")])).map((found) => found.scope.userId)).toEqual(["bo"]);
      expect((await store.loadScope(ana)).scope.nodes).toEqual([]);
      expect(await store.liveRequests(ana, 10)).toEqual([]);
      expect(await store.liveRequests(scopeOf("bo"), 10)).toHaveLength(1);
    });

    it("takes a request back with its turn, as if it had never been composed, unless another goes on from it", async () => {
      await composeInto(store, ana, { ...TEA, conversationId: "c" });
      const kept = await store.loadConversation(ana, "c" as ConversationId);
      const more = { question: "And?", memories: {}, conversationId: "c", history: [TEA.question, "Tea."] };
      await composeInto(store, ana, { ...more, requestId: "r2" });
      const withdraw = async (turn: number) => {
        const { state, base } = await stateOf(store, ana);
        return store.commitWithdrawal(ana, base, deltaOf(state), turn as TurnId);
      };
      await withdraw(1);
      expect(await store.findRequest(ana, id("r1"))).not.toBeNull();
      await withdraw(2);
      expect(await store.findRequest(ana, id("r2"))).toBeNull();
      expect(await store.loadConversation(ana, "c" as ConversationId)).toEqual(kept);
      expect(await store.counts(ana)).toEqual({ conversations: 1, turns: 1, requests: 1 });
      // Nothing has its number again.
      await composeInto(store, ana, { ...more, requestId: "r2" });
      expect((await store.findServed(ana, id("r2")))?.turn).toBe(3);
      await withdraw(3);
      await withdraw(3);
      await withdraw(1);
      expect(await store.counts(ana)).toEqual({ conversations: 0, turns: 0, requests: 0 });
      expect(await store.findRequest(ana, id("r1"))).toBeNull();
    });

    it("gives back turns that were said again, by their bytes and by what they mean", async () => {
      await composeInto(store, ana, { ...TEA, conversationId: "c" });
      const again = { requestId: "r2", question: "And? ", memories: {}, conversationId: "c" };
      await composeInto(store, ana, { ...again, history: [`${TEA.question}\n`, "Tea."] });
      const found = await store.findRequest(ana, id("r2"));
      expect(found?.turns.map(({ given }) => given.map(({ content }) => content))).toEqual([
        [`${TEA.question}\n`],
        ["Tea.", "And? "],
      ]);
      const [first, restated, last] = await store.loadConversation(ana, "c" as ConversationId);
      expect(restated).toMatchObject({ parent: null, meant: first?.meant, promptTokens: 0 });
      expect(restated?.given).not.toEqual(first?.given);
      expect(last?.parent).toBe(restated?.id);
      expect(last?.meant).not.toEqual(last?.given);
      expect((await store.findContinued(ana, id("r2")))?.continued?.requestId).toBe("r1");
    });

    it("keeps what an engine reported", async () => {
      const version = await composeInto(store, ana, TEA);
      const served = await store.findServed(ana, id("r1"));
      expect(served).toMatchObject({ leaf: 2, turn: 1, evicted: false, observed: null });
      expect(served?.plan.totalTokens).toBeGreaterThan(0);
      const { state, base } = await stateOf(store, ana);
      expect(base.version).toEqual(version);
      const delta = deltaOf(state);
      const observed = { promptTokens: 40, cachedTokens: 3, ttftMs: 1.5 };
      const next = await store.commitReport(ana, base, delta, { id: id("r1"), observed });
      expect(await store.findServed(ana, id("r1"))).toEqual({ ...served, observed });
      await expect(store.commitReport(ana, base, delta, { id: id("r1"), observed: {} })).rejects.toThrow(
        StaleScopeError,
      );
      expect((await store.findServed(ana, id("r1")))?.observed).toEqual(observed);
      await store.commitEviction(ana, { ...base, version: next }, delta, [id("r1")]);
      expect((await store.findServed(ana, id("r1")))?.evicted).toBe(true);
      expect(await store.findServed(ana, id("r2"))).toBeNull();
      expect(await store.findServed(scopeOf("bo"), id("r1"))).toBeNull();
    });

    it("knows since when requests are under way, and what was reported last", async () => {
      for (const requestId of ["r1", "r2", "r3"]) await composeInto(store, ana, { ...TEA, requestId });
      // All of them were composed at one time.
      const at = (await store.findServed(ana, id("r1")))?.at ?? 0;
      const reported = async (name: string, observed: EngineReport) => {
        const { state, base } = await stateOf(store, ana);
        await store.commitReport(ana, base, deltaOf(state), { id: id(name), observed });
      };
      expect([await store.underWaySince(ana, at - 1), await store.underWaySince(ana, at)]).toEqual([at, null]);
      expect(await store.findReportedBefore(ana, 3 as TurnId)).toBeNull();
      await reported("r1", { cachedTokens: 3 });
      await reported("r2", { ttftMs: 3 });
      expect(await store.underWaySince(ana, at - 1)).toBe(at);
      expect(await store.findReportedBefore(ana, 3 as TurnId)).toEqual(await store.findServed(ana, id("r1")));
      expect(await store.findReportedBefore(ana, 1 as TurnId)).toBeNull();
      await reported("r3", { cachedTokens: 4 });
      expect(await store.underWaySince(ana, at - 1)).toBeNull();
      expect([
        await store.underWaySince(scopeOf("bo"), 0),
        await store.findReportedBefore(scopeOf("bo"), 9 as TurnId),
      ]).toEqual([null, null]);
    });

    it("knows the worker that a turn's prompt was routed to", async () => {
      const routed = await recordFor(store, ana, TEA);
      const answer = { ...routed.record.request.answer, worker: "north" };
      const record = { ...routed.record, request: { ...routed.record.request, answer } };
      await store.commitCompose(ana, routed.base, record);
      await composeInto(store, ana, { ...TEA, requestId: "r2" });
      const workers = await Promise.all([1, 2, 3].map((turn) => store.findWorker(ana, turn as TurnId)));
      expect(workers).toEqual(["north", null, null]);
      expect((await store.findRequest(ana, id("r1")))?.answer).toEqual(answer);
      expect(await store.findWorker(scopeOf("bo"), 1 as TurnId)).toBeNull();
    });

    it("counts what ended in the same place since a turn and was not evicted, as far as it is asked to", async () => {
      for (const name of ["r1", "r2", "r3"]) await composeInto(store, ana, { ...TEA, requestId: name });
      await composeInto(store, scopeOf("bo"), TEA);
      const leaf = (await store.findServed(ana, id("r1")))?.leaf as NodeId;
      const since = (turn: number, most = 9) => store.countServedSince(ana, leaf, turn as TurnId, most);
      expect([await since(0), await since(1), await since(3), await since(0, 2)]).toEqual([3, 2, 0, 2]);
      expect(await store.countServedSince(ana, (leaf + 100) as NodeId, 0 as TurnId, 9)).toBe(0);
      expect(await store.countServedSince(scopeOf("cy"), leaf, 0 as TurnId, 9)).toBe(0);
      const { state, base } = await stateOf(store, ana);
      await store.commitEviction(ana, base, deltaOf(state), [id("r2")]);
      expect([await since(0), await since(1), await since(2)]).toEqual([2, 1, 1]);
    });

    it("finds a request's prompt, and the one that it continued", async () => {
      expect(await store.findContinued(ana, id("r1"))).toBeNull();
      await composeInto(store, ana, { ...TEA, conversationId: "c" });
      await composeInto(store, ana, { ...TEA, requestId: "r2" });
      const history = [TEA.question, "Tea."];
      await composeInto(store, ana, { ...TEA, requestId: "r3", question: "And?", conversationId: "c", history });
      await composeInto(store, ana, { ...TEA, requestId: "r4" });
      await composeInto(store, scopeOf("bo"), { ...TEA, requestId: "r5" });
      const found = await store.findContinued(ana, id("r3"));
      const continued = async (request: string) => (await store.findContinued(ana, id(request)))?.continued?.requestId;
      expect([await continued("r3"), await continued("r4"), await continued("r2")]).toEqual(["r1", "r2", undefined]);
      const [first, third] = await store.loadConversation(ana, "c" as ConversationId);
      expect(found?.prompt).toMatchObject({
        requestId: "r3",
        head: [{ role: "system", content: "Be kind." }],
        at: 1_700_000_000_000,
        plan: (await store.findServed(ana, id("r3")))?.plan,
        evicted: false,
        report: null,
      });
      expect(found?.prompt.turns).toEqual([
        { turn: first, given: [{ role: "user", content: TEA.question }] },
        {
          turn: third,
          given: [
            { role: "assistant", content: "Tea." },
            { role: "user", content: "And?" },
          ],
        },
      ]);
      expect(await store.findContinued(scopeOf("bo"), id("r3"))).toBeNull();
    });

    it("finds what the engine said of the earlier prompt, and one whose request's name was used again", async () => {
      await composeInto(store, ana, TEA);
      const { state, base } = await stateOf(store, ana);
      const observed = { promptTokens: 40, cachedTokens: 3 };
      const version = await store.commitReport(ana, base, deltaOf(state), { id: id("r1"), observed });
      await store.commitEviction(ana, { ...base, version }, deltaOf(state), [id("r1")]);
      await composeInto(store, ana, { ...TEA, requestId: "r2" });
      const found = await store.findContinued(ana, id("r2"));
      expect(found?.continued).toMatchObject({ requestId: "r1", evicted: true, report: observed });
      // Under an id whose answer was erased another request may be composed: its turn stays without a name.
      await composeInto(store, ana, { ...TEA, requestId: "r1" });
      const unnamed = (await store.findContinued(ana, id("r2")))?.continued;
      expect(unnamed).toMatchObject({ requestId: null, plan: null, evicted: false, report: null });
    });

    it("forgets a memory in blocks, turns and answers, and remembers only its id", async () => {
      await composeInto(store, ana, { ...TEA, conversationId: "c" });
      const { state, base } = await stateOf(store, ana);
      const gone = state.register.forget("m1" as MemoryId);
      state.index.forget(gone);
      const section = digestOf("after forgetting");
      const forgetting = {
        memoryId: "m1" as MemoryId,
        gone,
        quotes: await store.findQuotes("default", "ana" as UserId, "m1" as MemoryId, [], pause),
        sectionsOf: () => [section],
        keptResponses: ["b"],
        isInSource: false,
        at: 1,
      };
      const deletions = await store.deletionsOf("default", "ana" as UserId);
      for (const name of ["a", "b"]) await store.keepResponse(ana, deletions, name, id("r1"), null, 10);
      await store.commitForgetting(ana, base, { ...forgetting, delta: deltaOf(state) });
      const after = await store.loadScope(ana);
      expect(after.scope.register.blocks.map(({ text }) => text)).toEqual(["Bo is a dog."]);
      expect(after.scope.register.forgotten).toEqual(["m1"]);
      expect(after.scope.counters.nextLabel).toBe(3);
      expect(
        (await store.loadConversation(ana, "c" as ConversationId))[0]?.injection.blocks.map(({ label }) => label),
      ).toEqual([2]);
      expect((await store.findRequest(ana, id("r1")))?.answer.memories.map(({ memoryId }) => memoryId)).toEqual(["m2"]);
      expect(await store.knownSections(ana, [digestOf("never sent"), section])).toEqual([section]);
      expect([await store.findResponse(ana, "a"), await store.findResponse(ana, "b")]).toEqual([null, "r1"]);
    });

    it("keeps the last first-token times of an engine, counted from its first, and no other engine's", async () => {
      const time = (n: number) => ({ uncachedTokens: n, cachedTokens: 2 * n, ms: n + 0.5 });
      for (let n = 1; n <= 7; n++) await store.keepFirstTokenTime("a", time(n), 5);
      await store.keepFirstTokenTime("b", time(9), 5);
      expect([
        await store.countFirstTokenTimes("a"),
        await store.countFirstTokenTimes("b"),
        await store.countFirstTokenTimes("c"),
      ]).toEqual([7, 1, 0]);
      expect(await store.firstTokenTimes("a", 7, 100)).toEqual([3, 4, 5, 6, 7].map(time));
      expect(await store.firstTokenTimes("a", 6, 3)).toEqual([4, 5, 6].map(time));
    });

    it("remembers a forgotten memory for every agent of the user, and for nobody else, until the user is deleted", async () => {
      await composeInto(store, ana, TEA);
      const { state, base } = await stateOf(store, ana);
      const gone = state.register.forget("m1" as MemoryId);
      const record = {
        memoryId: "m1" as MemoryId,
        gone,
        quotes: { texts: [], rendered: [], scopes: new Map() },
        sectionsOf: () => [],
        keptResponses: [],
        isInSource: false,
        at: 1,
      };
      state.index.forget(gone);
      await store.commitForgetting(ana, base, { ...record, delta: deltaOf(state) });
      const forgottenBy = async (of: typeof ana) => (await store.loadScope(of)).scope.register.forgotten;
      expect(await forgottenBy({ ...ana, agentId: "new agent" as never })).toEqual(["m1"]);
      expect(await forgottenBy(scopeOf("bo"))).toEqual([]);
      expect(await forgottenBy(scopeOf("ana", "acme"))).toEqual([]);
      await store.deleteUser("default", "ana" as UserId, false);
      expect(await forgottenBy(ana)).toEqual([]);
    });

    it("erases what the application said where it quotes a forgotten text, and then has no answer to repeat", async () => {
      await composeInto(store, ana, { ...TEA, question: 'Is it true: "Ana likes tea."?' });
      const quotes = await store.findQuotes("default", "ana" as UserId, "m1" as MemoryId, [], pause);
      await composeInto(store, ana, { ...TEA, requestId: "r2", question: "Since then: Ana likes tea." });
      const { state, base } = await stateOf(store, ana);
      const gone = state.register.forget("m1" as MemoryId);
      state.index.forget(gone);
      await store.commitForgetting(ana, base, {
        delta: deltaOf(state),
        memoryId: "m1" as MemoryId,
        gone,
        quotes,
        sectionsOf: () => [],
        keptResponses: [],
        isInSource: false,
        at: 1,
      });
      expect(await store.findRequest(ana, id("r1"))).toBeNull();
      expect(await store.findRequest(ana, id("r2"))).toBeNull();
      await composeInto(store, ana, { ...TEA, memories: { m2: "Bo is a dog." } });
      expect(await store.findRequest(ana, id("r1"))).not.toBeNull();
    });
  });
}

const pause = () => Promise.resolve();

function neverHere(): never {
  throw new Error("nothing was stored");
}
