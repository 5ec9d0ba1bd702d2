import { describe, expect, it } from "vitest";
import { type ChatMessage, digestOf, type MemoryId, messageDigest } from "../../src/core/index.js";
import { storedCounts } from "../stored-counts.js";
import { conversationId, NOW, requestId, type Said, scopeOf, storedOf } from "./composed-users.js";
import { type OpenDatabase, SuiteStore } from "./suite-database.js";

const ana = scopeOf("ana");
const c = conversationId("c");
const TEA: Said = {
  requestId: "r1",
  question: "What does she drink?",
  memories: { m1: "Ana likes tea." },
  conversation: "c",
};

/** Messages whose fields a client sends in an order of its own, and texts that are hard to store. */
const ODD_MESSAGES: readonly ChatMessage[] = [
  { role: "user", content: "Look it up." },
  {
    tool_calls: [{ type: "function", id: "c1", function: { arguments: '{"b":1,"a":"\\u00e9"}', name: "look" } }],
    content: null,
    role: "assistant",
  },
  { tool_call_id: "c1", role: "tool", content: [{ text: "Jasmine.", type: "text" }] },
  { role: "assistant", content: 'A half of a pair: \ud83d, and a whole: 🍵, a zero: \0, and a quote: " \\ \u2028' },
  { content: "Content first.", role: "user" },
  { role: "assistant", content: "" },
  { role: "user", content: "And again.", name: "ana" },
  { name: "ana", role: "user", content: "And again." },
  { role: "assistant", content: null },
];

/** A conversation without turns. */
const EMPTY = { turns: [], sentAfter: null, instructions: null };

/** What was said in conversations, and how it comes back. */
export function describeConversations(open: OpenDatabase): void {
  describe("conversations", () => {
    const suite = new SuiteStore(open);
    const history = async (id = "c") => suite.store.findHistory(await suite.users.numberOf(ana), conversationId(id));
    const turns = async (id = "c") =>
      (await suite.store.loadConversation(await suite.users.numberOf(ana), conversationId(id))).turns;

    it("are none before their first prompt", async () => {
      const { store, users } = suite;
      await users.compose(ana, { ...TEA, conversation: "d" });
      expect(await history()).toBeNull();
      expect(await store.loadConversation(await users.numberOf(ana), c)).toEqual({ ...EMPTY, isCut: false });
      expect(storedCounts(await store.exportUser(ana))).toMatchObject({ conversations: 1, turns: 1, requests: 1 });
    });

    it("are found by their first message's meaning, those used last before the others", async () => {
      const { store, users } = suite;
      const [other, same] = [conversationId("d"), conversationId("e")];
      const opening = messageDigest({ role: "user", content: TEA.question });
      const found = async (most: number) => store.conversationsWith(await users.numberOf(ana), opening, most);
      await users.compose(ana, TEA);
      await users.compose(ana, { ...TEA, requestId: "r2", conversation: other, question: "Why?", at: NOW + 1 });
      await users.compose(ana, { ...TEA, requestId: "r3", conversation: same, at: NOW + 2 });
      expect(await found(9)).toEqual([same, c]);
      const later = { question: "Why?", history: [TEA.question, "Green."], at: NOW + 3 };
      await users.compose(ana, { ...TEA, requestId: "r4", ...later });
      expect(await found(9)).toEqual([c, same]);
      expect(await found(1)).toEqual([c]);
      expect(await store.conversationsWith(0, opening, 9)).toEqual([]);
    });

    it("give what was said up to the newest turn, as it was sent", async () => {
      const { users } = suite;
      await users.compose(ana, TEA);
      await users.compose(ana, { ...TEA, requestId: "r2", question: "Why?", history: [TEA.question, "Green."] });
      expect(await history()).toEqual({
        head: [{ role: "system", content: "Be kind." }],
        messages: [
          { role: "user", content: TEA.question },
          { role: "assistant", content: "Green." },
          { role: "user", content: "Why?" },
        ],
        newest: 2,
        prompts: [
          { total: expect.any(Number), computed: expect.any(Number) },
          { total: expect.any(Number), computed: expect.any(Number) },
        ],
        hasOwnHead: false,
        behind: null,
      });
      await users.compose(ana, { ...TEA, requestId: "r3", question: "Another?", history: [] });
      expect((await history())?.messages).toEqual([{ role: "user", content: "Another?" }]);
      expect(await history("d")).toBeNull();
    });

    it("give a message in the bytes in which it came, whatever the order of its fields and its characters", async () => {
      const { store, users } = suite;
      const told = [...ODD_MESSAGES, { role: "user", content: "Well?" }];
      await users.compose(ana, { ...TEA, history: ODD_MESSAGES, question: "Well?", system: "A zero: \0, \ud800." });
      expect(JSON.stringify((await history())?.messages)).toBe(JSON.stringify(told));
      expect((await history())?.head).toEqual([{ role: "system", content: "A zero: \0, \ud800." }]);
      await users.compose(ana, { ...TEA, requestId: "r2", question: "And?" });
      const found = await store.findRequest(await users.numberOf(ana), requestId("r2"));
      expect(JSON.stringify(found?.turns.flatMap(({ given }) => given).slice(0, told.length))).toBe(
        JSON.stringify(told),
      );
      const single = { requestId: "s", question: "Well?", memories: {}, history: ODD_MESSAGES };
      await users.compose(ana, single);
      const again = await store.findRequest(await users.numberOf(ana), requestId("s"));
      expect(JSON.stringify(again?.turns[0]?.given)).toBe(JSON.stringify(told));
    });

    it("store memories with any characters", async () => {
      const { store, users } = suite;
      const text = 'A zero: \0, a half: \ud83d, a whole: 🍵, a quote: " \\.';
      await users.compose(ana, { ...TEA, memories: { 'm\u{1f375}"\\': text } });
      const { stored } = await storedOf(store, ana);
      const [block] = stored?.register.blocks ?? [];
      expect(block?.text).toContain("a whole: 🍵");
      expect(stored).toEqual(users.state(ana)?.stored());
      const walk = await store.usersWithMemory("default", 'm\u{1f375}"\\' as MemoryId, "");
      expect(walk.users).toEqual([{ tenant: "default", userId: "ana" }]);
      await users.forget(ana, 'm\u{1f375}"\\');
      expect((await suite.rows("turns")).length).toBe(0);
    });

    it("store a message once, however often it is sent again, and each form of it", async () => {
      const { users } = suite;
      for (let n = 0; n < 12; n++) await users.compose(ana, { ...TEA, requestId: `r${n}`, question: `Question ${n}?` });
      // 12 questions, the same answer each time, and the instructions.
      expect(await suite.rows("messages")).toHaveLength(14);
      const { messages } = (await history()) ?? { messages: [] };
      expect(messages).toHaveLength(23);
      await users.compose(ana, { ...TEA, requestId: "window", question: "And now?", history: messages.slice(-7) });
      expect(await suite.rows("messages")).toHaveLength(15);
      // Another conversation has its own.
      await users.compose(ana, {
        ...TEA,
        requestId: "other",
        conversation: "d",
        history: messages,
        question: "There?",
      });
      expect(await suite.rows("messages")).toHaveLength(15 + 14);
    });

    it("go on in another form: what was said again is a turn of its own", async () => {
      const { store, users } = suite;
      await users.compose(ana, TEA);
      const again = { requestId: "r2", question: "And? ", memories: {}, conversation: "c" };
      await users.compose(ana, { ...again, history: [`${TEA.question}\n`, "Tea."] });
      const found = await store.findRequest(await users.numberOf(ana), requestId("r2"));
      expect(found?.turns.map(({ given }) => given.map(({ content }) => content))).toEqual([
        [`${TEA.question}\n`],
        ["Tea.", "And? "],
      ]);
      const [first, restated, last] = await turns();
      expect(restated).toMatchObject({ parent: null, meant: first?.meant, promptTokens: 0 });
      expect(restated?.given).not.toEqual(first?.given);
      expect(last?.parent).toBe(restated?.id);
      expect((await history())?.prompts).toHaveLength(1);
      expect((await store.findContinued(await users.numberOf(ana), requestId("r2")))?.continued?.requestId).toBe("r1");
    });

    it("branch where a client goes back, and go on from either branch", async () => {
      const { users } = suite;
      await users.compose(ana, TEA);
      const start = [TEA.question, "Tea."];
      await users.compose(ana, { ...TEA, requestId: "r2", question: "Green?", history: start });
      await users.compose(ana, { ...TEA, requestId: "r3", question: "Black?", history: start });
      const texts = async () => (await history())?.messages.map(({ content }) => content);
      expect(await texts()).toEqual([...start, "Black?"]);
      await users.compose(ana, { ...TEA, requestId: "r4", question: "Why?", history: [...start, "Green?", "Yes."] });
      expect(await texts()).toEqual([...start, "Green?", "Yes.", "Why?"]);
      expect((await turns()).map(({ id, parent }) => [id, parent])).toEqual([
        [1, null],
        [2, 1],
        [3, 1],
        [4, 2],
      ]);
    });

    it("load their last thousand turns, and all of the newest epoch", async () => {
      const { store, users } = suite;
      const { turn } = await users.compose(ana, TEA);
      const scopeId = await users.numberOf(ana);
      const [row] = await suite.rows("turns");
      const { turn: json } = row ?? {};
      const insert =
        "insert into turns (scope_id, id, conversation_id, at, head, turn) values ($1, $2, 'c', $3, $4, $5)";
      const add = (from: number, to: number, epoch: number) =>
        suite.database.write(
          Array.from({ length: to - from + 1 }, (_, at) => ({
            text: insert,
            values: [
              scopeId,
              from + at,
              NOW,
              turn.head,
              JSON.stringify({
                ...JSON.parse(String(json)),
                parent: from + at === epoch ? null : from + at - 1,
                epoch,
              }),
            ],
          })),
        );
      await add(2, 1_500, 1);
      const loadedTurns = async () => (await store.loadConversation(scopeId, c)).turns.map(({ id }) => id);
      expect((await loadedTurns()).length).toBe(1_500);
      await add(1_501, 1_502, 1_501);
      expect((await loadedTurns()).length).toBe(1_000);
      expect((await loadedTurns()).at(-1)).toBe(1_502);
      expect((await loadedTurns())[0]).toBe(503);
    });

    it("know the sections that were sent in them", async () => {
      const { store, users } = suite;
      const { sections } = await users.compose(ana, TEA);
      expect(sections.length).toBeGreaterThan(0);
      const scopeId = await users.numberOf(ana);
      const asked = [digestOf("never sent"), ...sections];
      expect(await store.knownSections(scopeId, asked)).toEqual(sections);
      await users.compose(scopeOf("bo"), { ...TEA, memories: {} });
      expect(await store.knownSections(await users.numberOf(scopeOf("bo")), asked)).toEqual([]);
      const [row] = await suite.rows("turns");
      expect(row?.["section"]).toContain("Ana likes tea.");
    });

    it("end before the first turn that was given a forgotten memory, say so, and go on", async () => {
      const { store, users } = suite;
      await users.compose(ana, { ...TEA, memories: { m2: "Bo is a dog." } });
      await users.compose(ana, { ...TEA, requestId: "r2", question: "And?" });
      await users.compose(ana, { ...TEA, requestId: "r3", question: "So?", memories: {} });
      const { conversations } = await users.forget(ana, "m1");
      expect(conversations).toEqual([{ agentId: null, conversationId: "c" }]);
      const scopeId = await users.numberOf(ana);
      expect(await store.loadConversation(scopeId, c)).toMatchObject({ turns: [{ id: 1 }], isCut: true });
      expect((await history())?.messages).toEqual([{ role: "user", content: TEA.question }]);
      await users.compose(ana, { ...TEA, requestId: "r4", question: "Then?" });
      expect(await store.loadConversation(scopeId, c)).toMatchObject({ turns: [{ id: 1 }, { id: 4 }], isCut: false });
      await users.forget(ana, "m2");
      expect(await store.loadConversation(scopeId, c)).toEqual({ ...EMPTY, isCut: true });
      expect(storedCounts(await store.exportUser(ana))).toMatchObject({ conversations: 1, turns: 0, requests: 0 });
    });
  });
}
