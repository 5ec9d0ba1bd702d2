import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type ConversationId,
  digestOf,
  EMPTY_SCOPE,
  type MemoryId,
  type NodeId,
  ScopeState,
  type TurnId,
  type UserId,
} from "../../../src/core/index.js";
import { type EngineReport, StaleScopeError, type Store } from "../../../src/store/api/store.js";
import { allOf, composeInto, countTokens, id, recordFor, scopeOf } from "./stored-compose.js";

const ana = scopeOf("ana");
const TEA = {
  requestId: "r1",
  question: "What does she drink?",
  memories: { m1: "Ana likes tea.", m2: "Bo is a dog." },
};

/** The behaviour of every store. */
export function describeStore(name: string, open: () => Store): void {
  describe(`store: ${name}`, () => {
    let store: Store;
    beforeEach(() => {
      store = open();
    });
    afterEach(() => store.close());

    it("knows nothing of a scope that was never committed", () => {
      expect(store.loadScope(ana)).toEqual({ scope: EMPTY_SCOPE, version: null });
      expect(store.findRequest(ana, id("r1"))).toBeNull();
      expect(store.loadConversation(ana, "c" as ConversationId)).toEqual([]);
      expect(store.counts(ana)).toEqual({ conversations: 0, turns: 0, requests: 0 });
    });

    it("gives back what was committed", () => {
      composeInto(store, ana, { ...TEA, conversationId: "c" });
      const { scope, version } = store.loadScope(ana);
      expect(version?.commits).toBe(1);
      expect(scope.counters).toEqual({ nextLabel: 3, nextNode: 3, nextTurn: 2, requests: 1 });
      expect(scope.register.blocks.map(({ label, text }) => [label, text])).toEqual([
        [1, "Ana likes tea."],
        [2, "Bo is a dog."],
      ]);
      expect(scope.register.versions).toHaveLength(2);
      expect(scope.nodes.map(({ run }) => run)).toEqual([[], [1, 2]]);
      const [turn] = store.loadConversation(ana, "c" as ConversationId);
      const found = store.findRequest(ana, id("r1"));
      expect(found?.turns).toEqual([{ turn, given: [{ role: "user", content: TEA.question }] }]);
      expect(found?.head).toEqual([{ role: "system", content: "Be kind." }]);
      expect(found?.answer.memories.map(({ memoryId }) => memoryId)).toEqual(["m1", "m2"]);
      expect(store.counts(ana)).toEqual({ conversations: 1, turns: 1, requests: 1 });
    });

    describe("responses", () => {
      const responseTo = (request: string, text = "Tea.") => ({
        requestId: id(request),
        isHeld: true,
        sent: { count: 2, digest: digestOf("sent") },
        output: [{ role: "assistant", content: text }],
      });

      it("are found by their ids in their own scope, as they were kept last", () => {
        composeInto(store, ana, { ...TEA, conversationId: "c" });
        store.keepResponse(ana, digestOf("a"), responseTo("r1", "Milk."), null, 10);
        store.keepResponse(ana, digestOf("a"), responseTo("r1"), null, 10);
        expect(store.findResponse(ana, digestOf("a"))).toEqual(responseTo("r1"));
        expect(store.findResponse(ana, digestOf("b"))).toBeNull();
        composeInto(store, scopeOf("bo"), TEA);
        for (const other of [scopeOf("bo"), scopeOf("nobody")])
          expect(store.findResponse(other, digestOf("a"))).toBeNull();
      });

      it("are not kept without their request, and go with it", () => {
        store.keepResponse(ana, digestOf("a"), responseTo("r1"), null, 10);
        composeInto(store, ana, TEA);
        expect(store.findResponse(ana, digestOf("a"))).toBeNull();
        store.keepResponse(ana, digestOf("a"), responseTo("r1"), null, 10);
        const { scope, version } = store.loadScope(ana);
        store.commitWithdrawal(ana, version, new ScopeState(scope, countTokens).drain(), 1 as TurnId);
        expect(store.findResponse(ana, digestOf("a"))).toBeNull();
      });

      it("of one tenant are bounded; the least recently used go first", () => {
        composeInto(store, ana, TEA);
        const other = scopeOf("ana", "other");
        composeInto(store, other, TEA);
        store.keepResponse(other, digestOf("theirs"), responseTo("r1"), null, 5);
        for (let at = 0; at < 64; at++)
          store.keepResponse(ana, digestOf(`${at}`), responseTo("r1"), at < 60 ? null : digestOf("3"), 5);
        const kept = [...Array(64).keys()].filter((at) => store.findResponse(ana, digestOf(`${at}`)) !== null);
        expect(kept).toEqual([3, 60, 61, 62, 63]);
        expect(store.findResponse(other, digestOf("theirs"))).not.toBeNull();
      });
    });

    it("finds the whole path of turns for a later request of a conversation", () => {
      composeInto(store, ana, { ...TEA, conversationId: "c" });
      const history = [TEA.question, "Tea."];
      composeInto(store, ana, {
        requestId: "r2",
        question: "And?",
        memories: { m1: "Ana likes tea." },
        conversationId: "c",
        history,
      });
      const found = store.findRequest(ana, id("r2"));
      expect(found?.turns.map(({ given }) => given.map(({ content }) => content))).toEqual([
        [TEA.question],
        ["Tea.", "And?"],
      ]);
      expect(store.loadConversation(ana, "c" as ConversationId).map(({ id: turn, parent }) => [turn, parent])).toEqual([
        [1, null],
        [2, 1],
      ]);
    });

    it("refuses a commit on a version that is not the stored one, and changes nothing", () => {
      const first = recordFor(store, ana, TEA);
      const rival = recordFor(store, ana, { ...TEA, requestId: "r2", memories: { m9: "Something else." } });
      store.commitCompose(ana, first.version, first.record);
      const before = allOf(store, ana);
      expect(() => store.commitCompose(ana, rival.version, rival.record)).toThrow(StaleScopeError);
      expect(allOf(store, ana)).toEqual(before);
      expect(store.findRequest(ana, id("r2"))).toBeNull();
      expect(() =>
        store.commitEviction(ana, { ...(before.version ?? neverHere()), commits: 0 }, rival.record.changes, []),
      ).toThrow(StaleScopeError);
    });

    it("begins what may never come: nothing is stored of it", async () => {
      const version = composeInto(store, ana, TEA);
      await store.settled;
      const before = allOf(store, ana);
      store.begin();
      store.begin();
      await store.settled;
      expect(allOf(store, ana)).toEqual(before);
      store.begin();
      const { record } = recordFor(store, ana, { ...TEA, requestId: "r2" });
      expect(store.commitCompose(ana, version, record).commits).toBe(version.commits + 1);
      await store.settled;
      expect(store.findRequest(ana, id("r2"))).not.toBeNull();
    });

    it("does not take a user who came back for the one that was deleted", () => {
      const version = composeInto(store, ana, TEA);
      store.deleteUser("default", "ana" as UserId, false);
      const again = composeInto(store, ana, TEA);
      expect(again.scopeId).not.toBe(version.scopeId);
      const { record } = recordFor(store, ana, { ...TEA, requestId: "r2" });
      expect(() => store.commitCompose(ana, version, record)).toThrow(StaleScopeError);
    });

    it("gives what was said in a conversation up to its newest turn, and nothing of another's", () => {
      const said = (of = ana, conversation = "c") => store.findHistory(of, conversation as ConversationId);
      expect(said()).toBeNull();
      const asked = { ...TEA, conversationId: "c" };
      composeInto(store, ana, asked);
      const history = [TEA.question, "Green."];
      composeInto(store, ana, { ...asked, requestId: "r2", history, question: "Why?" });
      const messages = [TEA.question, "Green.", "Why?"].map((content, at) => ({
        role: at % 2 === 0 ? "user" : "assistant",
        content,
      }));
      const head = [{ role: "system", content: "Be kind." }];
      expect(said()).toEqual({
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
      composeInto(store, ana, { ...asked, requestId: "r3", question: "Another?" });
      expect(said()?.messages).toEqual([{ role: "user", content: "Another?" }]);
      expect([said(scopeOf("bo")), said(ana, "d"), said(scopeOf("ana", "acme"))]).toEqual([null, null, null]);
    });

    it("says which version a scope is, and counts deletions of a user and of their memories by tenant", () => {
      expect(store.versionOf(ana)).toBeNull();
      const version = composeInto(store, ana, TEA);
      expect(store.versionOf(ana)).toEqual(version);
      const counts = (tenant: string, user: string) => store.deletionsOf(tenant, user as UserId);
      const others = () => [counts("acme", "ana"), counts("default", "bo")];
      const [before, othersBefore] = [counts("default", "ana"), others()];
      store.deleteUser("default", "ana" as UserId, false);
      expect(store.versionOf(ana)).toBeNull();
      expect(counts("default", "ana")).toEqual({ ...before, users: before.users + 1 });
      expect(others()).toEqual(othersBefore);
    });

    it("keeps what a memory source has yet to delete until it has, a user's and one memory's", () => {
      const user = "ana" as UserId;
      const memory = "m1" as MemoryId;
      const forget = (isInSource: boolean) => {
        const { scope, version } = store.loadScope(ana);
        const state = new ScopeState(scope, countTokens);
        const gone = state.register.forget(memory);
        const record = {
          changes: state.drain(),
          memoryId: memory,
          gone,
          quotes: { texts: [], rendered: [], scopes: new Map() },
          sectionsOf: () => [],
          at: 1,
        };
        store.commitForgetting(ana, version, { ...record, isInSource });
      };
      forget(false);
      expect(store.pendingInSource("default", user)).toBeNull();
      const before = store.deletionsOf("default", user);
      forget(true);
      forget(true);
      expect(store.deletionsOf("default", user)).toEqual({ ...before, memories: before.memories + 2 });
      expect(store.pendingInSource("default", user)).toEqual({ everything: false, memoryIds: [memory] });
      store.deleteUser("default", user, true);
      expect(store.pendingInSource("default", user)).toEqual({ everything: true, memoryIds: [memory] });
      expect(store.pendingInSource("acme", user)).toBeNull();
      expect(store.usersPendingInSource()).toEqual([{ tenant: "default", userId: user }]);
      store.deletedFromSource("default", user, null);
      expect(store.pendingInSource("default", user)).toEqual({ everything: false, memoryIds: [memory] });
      store.deletedFromSource("default", user, memory);
      expect(store.usersPendingInSource()).toEqual([]);
    });

    it("keeps scopes apart: tenant, user and agent", () => {
      const scopes = [ana, scopeOf("bo"), scopeOf("ana", "acme"), { ...ana, agentId: "coach" as never }];
      for (const [n, scope] of scopes.entries()) composeInto(store, scope, { ...TEA, memories: { m1: `Text ${n}.` } });
      for (const [n, scope] of scopes.entries()) {
        expect(store.loadScope(scope).scope.register.blocks.map(({ text }) => text)).toEqual([`Text ${n}.`]);
        expect(store.counts(scope).requests).toBe(1);
      }
      expect(store.scopesOf("default", "ana" as UserId)).toHaveLength(2);
      expect(store.deleteUser("default", "ana" as UserId, false)).toBe(2);
      expect(store.loadScope(ana).version).toBeNull();
      expect(store.loadScope(scopes[1] ?? ana).version).not.toBeNull();
      expect(store.loadScope(scopes[2] ?? ana).version).not.toBeNull();
    });

    it("names live requests by id across users of a tenant, until they are evicted", () => {
      composeInto(store, ana, TEA);
      composeInto(store, scopeOf("bo"), TEA);
      composeInto(store, scopeOf("ana", "acme"), TEA);
      const live = store.findLiveRequests("default", [id("r1"), id("r1"), id("nope")]);
      expect(live.map(({ scope }) => scope.userId)).toEqual(["ana", "bo"]);
      const { scope, version } = store.loadScope(ana);
      const state = new ScopeState(scope, countTokens);
      expect(state.index.evict(live[0]?.leaf ?? (0 as never))).toBe(true);
      store.commitEviction(ana, version, state.drain(), [id("r1")]);
      expect(store.findLiveRequests("default", [id("r1")]).map((found) => found.scope.userId)).toEqual(["bo"]);
      expect(store.loadScope(ana).scope.nodes).toEqual([]);
      expect(store.liveRequests(ana, 10)).toEqual([]);
      expect(store.liveRequests(scopeOf("bo"), 10)).toHaveLength(1);
    });

    it("takes a request back with its turn, as if it had never been composed, unless another goes on from it", () => {
      composeInto(store, ana, { ...TEA, conversationId: "c" });
      const kept = store.loadConversation(ana, "c" as ConversationId);
      const more = { question: "And?", memories: {}, conversationId: "c", history: [TEA.question, "Tea."] };
      composeInto(store, ana, { ...more, requestId: "r2" });
      const withdraw = (turn: number) => {
        const { scope, version } = store.loadScope(ana);
        const changes = new ScopeState(scope, countTokens).drain();
        return store.commitWithdrawal(ana, version, changes, turn as TurnId);
      };
      withdraw(1);
      expect(store.findRequest(ana, id("r1"))).not.toBeNull();
      withdraw(2);
      expect(store.findRequest(ana, id("r2"))).toBeNull();
      expect(store.loadConversation(ana, "c" as ConversationId)).toEqual(kept);
      expect(store.counts(ana)).toEqual({ conversations: 1, turns: 1, requests: 1 });
      // Nothing has its number again.
      composeInto(store, ana, { ...more, requestId: "r2" });
      expect(store.findServed(ana, id("r2"))?.turn).toBe(3);
      withdraw(3);
      withdraw(3);
      withdraw(1);
      expect(store.counts(ana)).toEqual({ conversations: 0, turns: 0, requests: 0 });
      expect(store.findRequest(ana, id("r1"))).toBeNull();
    });

    it("gives back turns that were said again, by their bytes and by what they mean", () => {
      composeInto(store, ana, { ...TEA, conversationId: "c" });
      const again = { requestId: "r2", question: "And? ", memories: {}, conversationId: "c" };
      composeInto(store, ana, { ...again, history: [`${TEA.question}\n`, "Tea."] });
      const found = store.findRequest(ana, id("r2"));
      expect(found?.turns.map(({ given }) => given.map(({ content }) => content))).toEqual([
        [`${TEA.question}\n`],
        ["Tea.", "And? "],
      ]);
      const [first, restated, last] = store.loadConversation(ana, "c" as ConversationId);
      expect(restated).toMatchObject({ parent: null, meant: first?.meant, promptTokens: 0 });
      expect(restated?.given).not.toEqual(first?.given);
      expect(last?.parent).toBe(restated?.id);
      expect(last?.meant).not.toEqual(last?.given);
      expect(store.findPromptHistory(ana, id("r2"))?.earlier.map(({ requestId }) => requestId)).toEqual(["r1"]);
    });

    it("keeps what an engine reported", () => {
      const version = composeInto(store, ana, TEA);
      const served = store.findServed(ana, id("r1"));
      expect(served).toMatchObject({ leaf: 2, turn: 1, evicted: false, observed: null });
      expect(served?.plan.totalTokens).toBeGreaterThan(0);
      const changes = new ScopeState(store.loadScope(ana).scope, countTokens).drain();
      const observed = { promptTokens: 40, cachedTokens: 3, ttftMs: 1.5 };
      const next = store.commitReport(ana, version, changes, { id: id("r1"), observed });
      expect(store.findServed(ana, id("r1"))).toEqual({ ...served, observed });
      expect(() => store.commitReport(ana, version, changes, { id: id("r1"), observed: {} })).toThrow(StaleScopeError);
      expect(store.findServed(ana, id("r1"))?.observed).toEqual(observed);
      store.commitEviction(ana, next, changes, [id("r1")]);
      expect(store.findServed(ana, id("r1"))?.evicted).toBe(true);
      expect(store.findServed(ana, id("r2"))).toBeNull();
      expect(store.findServed(scopeOf("bo"), id("r1"))).toBeNull();
    });

    it("knows since when requests are under way, and what was reported last", () => {
      for (const requestId of ["r1", "r2", "r3"]) composeInto(store, ana, { ...TEA, requestId });
      // All of them were composed at one time.
      const at = store.findServed(ana, id("r1"))?.at ?? 0;
      const reported = (name: string, observed: EngineReport) => {
        const { scope, version } = store.loadScope(ana);
        const changes = new ScopeState(scope, countTokens).drain();
        store.commitReport(ana, version, changes, { id: id(name), observed });
      };
      expect([store.underWaySince(ana, at - 1), store.underWaySince(ana, at)]).toEqual([at, null]);
      expect(store.findReportedBefore(ana, 3 as TurnId)).toBeNull();
      reported("r1", { cachedTokens: 3 });
      reported("r2", { ttftMs: 3 });
      expect(store.underWaySince(ana, at - 1)).toBe(at);
      expect(store.findReportedBefore(ana, 3 as TurnId)).toEqual(store.findServed(ana, id("r1")));
      expect(store.findReportedBefore(ana, 1 as TurnId)).toBeNull();
      reported("r3", { cachedTokens: 4 });
      expect(store.underWaySince(ana, at - 1)).toBeNull();
      expect([store.underWaySince(scopeOf("bo"), 0), store.findReportedBefore(scopeOf("bo"), 9 as TurnId)]).toEqual([
        null,
        null,
      ]);
    });

    it("knows the worker that a turn's prompt was routed to", () => {
      const routed = recordFor(store, ana, TEA);
      const answer = { ...routed.record.request.answer, worker: "north" };
      const record = { ...routed.record, request: { ...routed.record.request, answer } };
      store.commitCompose(ana, routed.version, record);
      composeInto(store, ana, { ...TEA, requestId: "r2" });
      const workers = [1, 2, 3].map((turn) => store.findWorker(ana, turn as TurnId));
      expect(workers).toEqual(["north", null, null]);
      expect(store.findRequest(ana, id("r1"))?.answer).toEqual(answer);
      expect(store.findWorker(scopeOf("bo"), 1 as TurnId)).toBeNull();
    });

    it("counts what ended in the same place since a turn and was not evicted, as far as it is asked to", () => {
      for (const name of ["r1", "r2", "r3"]) composeInto(store, ana, { ...TEA, requestId: name });
      composeInto(store, scopeOf("bo"), TEA);
      const leaf = store.findServed(ana, id("r1"))?.leaf as NodeId;
      const since = (turn: number, most = 9) => store.countServedSince(ana, leaf, turn as TurnId, most);
      expect([since(0), since(1), since(3), since(0, 2)]).toEqual([3, 2, 0, 2]);
      expect(store.countServedSince(ana, (leaf + 100) as NodeId, 0 as TurnId, 9)).toBe(0);
      expect(store.countServedSince(scopeOf("cy"), leaf, 0 as TurnId, 9)).toBe(0);
      const { scope, version } = store.loadScope(ana);
      const changes = new ScopeState(scope, () => 1).drain();
      store.commitEviction(ana, version, changes, [id("r2")]);
      expect([since(0), since(1), since(2)]).toEqual([2, 1, 1]);
    });

    it("finds a request's prompt among those composed before it, newest first", () => {
      expect(store.findPromptHistory(ana, id("r1"))).toBeNull();
      composeInto(store, ana, { ...TEA, conversationId: "c" });
      composeInto(store, ana, { ...TEA, requestId: "r2" });
      const history = [TEA.question, "Tea."];
      composeInto(store, ana, { ...TEA, requestId: "r3", question: "And?", conversationId: "c", history });
      composeInto(store, ana, { ...TEA, requestId: "r4" });
      composeInto(store, scopeOf("bo"), { ...TEA, requestId: "r5" });
      const found = store.findPromptHistory(ana, id("r3"));
      expect(found?.isComplete).toBe(true);
      expect(found?.earlier.map(({ requestId }) => requestId)).toEqual(["r2", "r1"]);
      const [first, third] = store.loadConversation(ana, "c" as ConversationId);
      expect(found?.prompt).toMatchObject({
        requestId: "r3",
        head: [{ role: "system", content: "Be kind." }],
        at: 1_700_000_000_000,
        plan: store.findServed(ana, id("r3"))?.plan,
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
      expect(store.findPromptHistory(scopeOf("bo"), id("r3"))).toBeNull();
    });

    it("finds what engines said of earlier prompts, and those whose request's name was used again", () => {
      composeInto(store, ana, TEA);
      const version = composeInto(store, ana, { ...TEA, requestId: "r2" });
      const changes = new ScopeState(store.loadScope(ana).scope, countTokens).drain();
      const observed = { promptTokens: 40, cachedTokens: 3 };
      const next = store.commitReport(ana, version, changes, { id: id("r1"), observed });
      store.commitEviction(ana, next, changes, [id("r1")]);
      composeInto(store, ana, { ...TEA, requestId: "r3" });
      const [second, first] = store.findPromptHistory(ana, id("r3"))?.earlier ?? [];
      expect(first).toMatchObject({ requestId: "r1", evicted: true, report: observed });
      expect(second).toMatchObject({ requestId: "r2", evicted: false, report: null });
      // Under an id whose answer was erased another request may be composed: its turn stays without a name.
      composeInto(store, ana, { ...TEA, requestId: "r1" });
      const unnamed = store.findPromptHistory(ana, id("r1"))?.earlier.at(-1);
      expect(unnamed).toMatchObject({ requestId: null, plan: null, evicted: false, report: null });
    });

    it("finds no more than the newest prompts before a request, but always what it goes on from", () => {
      composeInto(store, ana, { ...TEA, requestId: "first", conversationId: "c" });
      for (let n = 0; n < 205; n++) composeInto(store, ana, { requestId: `s${n}`, question: "?", memories: {} });
      composeInto(store, ana, {
        requestId: "last",
        question: "And?",
        memories: {},
        conversationId: "c",
        history: [TEA.question, "Tea."],
      });
      const found = store.findPromptHistory(ana, id("last"));
      expect(found?.isComplete).toBe(false);
      expect(found?.earlier).toHaveLength(201);
      expect(found?.earlier.map(({ requestId }) => requestId).filter((_, at) => at === 0 || at >= 199)).toEqual([
        "s204",
        "s5",
        "first",
      ]);
    });

    it("forgets a memory in blocks, turns and answers, and remembers only its id", async () => {
      composeInto(store, ana, { ...TEA, conversationId: "c" });
      const { scope, version } = store.loadScope(ana);
      const state = new ScopeState(scope, countTokens);
      const gone = state.register.forget("m1" as MemoryId);
      state.index.forget(gone);
      const section = digestOf("after forgetting");
      const forgetting = {
        memoryId: "m1" as MemoryId,
        gone,
        quotes: await store.findQuotes("default", "ana" as UserId, "m1" as MemoryId, [], pause),
        sectionsOf: () => [section],
        isInSource: false,
        at: 1,
      };
      store.commitForgetting(ana, version, { ...forgetting, changes: state.drain() });
      const after = store.loadScope(ana);
      expect(after.scope.register.blocks.map(({ text }) => text)).toEqual(["Bo is a dog."]);
      expect(after.scope.register.forgotten).toEqual(["m1"]);
      expect(after.scope.counters.nextLabel).toBe(3);
      expect(store.loadConversation(ana, "c" as ConversationId)[0]?.injection.blocks.map(({ label }) => label)).toEqual(
        [2],
      );
      expect(store.findRequest(ana, id("r1"))?.answer.memories.map(({ memoryId }) => memoryId)).toEqual(["m2"]);
      expect(store.knowsSection(ana, section)).toBe(true);
    });

    it("keeps the last first-token times of an engine, counted from its first, and no other engine's", () => {
      const time = (n: number) => ({ uncachedTokens: n, cachedTokens: 2 * n, ms: n + 0.5 });
      for (let n = 1; n <= 7; n++) store.keepFirstTokenTime("a", time(n), 5);
      store.keepFirstTokenTime("b", time(9), 5);
      expect([
        store.countFirstTokenTimes("a"),
        store.countFirstTokenTimes("b"),
        store.countFirstTokenTimes("c"),
      ]).toEqual([7, 1, 0]);
      expect(store.firstTokenTimes("a", 7, 100)).toEqual([3, 4, 5, 6, 7].map(time));
      expect(store.firstTokenTimes("a", 6, 3)).toEqual([4, 5, 6].map(time));
    });

    it("remembers a forgotten memory for every agent of the user, and for nobody else, until the user is deleted", () => {
      composeInto(store, ana, TEA);
      const { scope, version } = store.loadScope(ana);
      const state = new ScopeState(scope, countTokens);
      const gone = state.register.forget("m1" as MemoryId);
      const record = {
        memoryId: "m1" as MemoryId,
        gone,
        quotes: { texts: [], rendered: [], scopes: new Map() },
        sectionsOf: () => [],
        isInSource: false,
        at: 1,
      };
      state.index.forget(gone);
      store.commitForgetting(ana, version, { ...record, changes: state.drain() });
      const forgottenBy = (of: typeof ana) => store.loadScope(of).scope.register.forgotten;
      expect(forgottenBy({ ...ana, agentId: "new agent" as never })).toEqual(["m1"]);
      expect(forgottenBy(scopeOf("bo"))).toEqual([]);
      expect(forgottenBy(scopeOf("ana", "acme"))).toEqual([]);
      store.deleteUser("default", "ana" as UserId, false);
      expect(forgottenBy(ana)).toEqual([]);
    });

    it("erases what the application said where it quotes a forgotten text, and then has no answer to repeat", async () => {
      composeInto(store, ana, { ...TEA, question: 'Is it true: "Ana likes tea."?' });
      const quotes = await store.findQuotes("default", "ana" as UserId, "m1" as MemoryId, [], pause);
      composeInto(store, ana, { ...TEA, requestId: "r2", question: "Since then: Ana likes tea." });
      const { scope, version } = store.loadScope(ana);
      const state = new ScopeState(scope, countTokens);
      const gone = state.register.forget("m1" as MemoryId);
      state.index.forget(gone);
      store.commitForgetting(ana, version, {
        changes: state.drain(),
        memoryId: "m1" as MemoryId,
        gone,
        quotes,
        sectionsOf: () => [],
        isInSource: false,
        at: 1,
      });
      expect(store.findRequest(ana, id("r1"))).toBeNull();
      expect(store.findRequest(ana, id("r2"))).toBeNull();
      composeInto(store, ana, { ...TEA, memories: { m2: "Bo is a dog." } });
      expect(store.findRequest(ana, id("r1"))).not.toBeNull();
    });
  });
}

const pause = () => Promise.resolve();

function neverHere(): never {
  throw new Error("nothing was stored");
}
