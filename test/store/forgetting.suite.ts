import { describe, expect, it } from "vitest";
import { type ChatMessage, labelsIn, type Scope } from "../../src/core/index.js";
import { storedCounts } from "../stored-counts.js";
import { conversationId, NOW, requestId, type Said, scopeOf, storedOf } from "./composed-users.js";
import { type OpenDatabase, SuiteStore } from "./suite-database.js";

const ana = scopeOf("ana");
const coach: Scope = { ...ana, agentId: "coach" as Scope["agentId"] };
const TEA = 'Ana says: "tea\\milk", and no café.';
const DOG = "Bo is a dog.";

/** A message of each kind that says a text. */
const SAYING: readonly (readonly [name: string, message: (text: string) => ChatMessage])[] = [
  ["a user's message", (text) => ({ role: "user", content: `Is it true: ${text}?` })],
  ["a part of a message", (text) => ({ role: "user", content: [{ type: "text", text: `It is ${text}` }] })],
  ["a tool's result", (text) => ({ role: "tool", tool_call_id: "c1", content: JSON.stringify({ found: [text] }) })],
  [
    "the arguments of a tool call",
    (text) => ({
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "keep", arguments: JSON.stringify({ text }) } }],
    }),
  ],
  [
    "arguments that Python has written",
    (text) => ({
      role: "assistant",
      content: null,
      tool_calls: [
        {
          id: "c1",
          type: "function",
          function: { name: "keep", arguments: JSON.stringify({ text }).replaceAll("é", "\\u00e9") },
        },
      ],
    }),
  ],
];

/** What is left when a memory is forgotten, and when turns get old. */
export function describeForgetting(open: OpenDatabase): void {
  describe("a forgotten memory", () => {
    const suite = new SuiteStore(open);
    const talk = async (conversation: string, list: readonly (Partial<Said> | null)[], scope = ana) => {
      for (const [n, said] of list.entries())
        await suite.users.compose(scope, {
          requestId: `${conversation}${n}`,
          question: `${conversation}: question ${n}?`,
          memories: {},
          conversation,
          at: NOW + n,
          ...said,
        });
    };
    const turnsOf = async (conversation: string, scope = ana) => {
      const { users, store } = suite;
      const { turns } = await store.loadConversation(await users.numberOf(scope), conversationId(conversation));
      return turns.length;
    };

    it("is in no row, and a conversation ends before the first turn that was given it", async () => {
      const { store, users } = suite;
      await talk("c", [
        { memories: { m2: DOG } },
        {},
        { memories: { m1: TEA, m2: DOG } },
        {},
        { memories: { m1: TEA } },
      ]);
      await talk("d", [{ memories: { m2: DOG } }, {}]);
      expect(await suite.placesOf(TEA)).toEqual(["changes.changes", "turns.section"]);
      const receipt = await users.forget(ana, "m1");
      expect(receipt).toMatchObject({
        conversations: [{ agentId: null, conversationId: "c" }],
        prompts: 3,
        newestAt: NOW + 4,
        responses: [],
        files: "erased",
      });
      expect(receipt.labels).toHaveLength(1);
      expect(await suite.placesOf(TEA)).toEqual([]);
      expect([await turnsOf("c"), await turnsOf("d")]).toEqual([2, 2]);
      const scopeId = await users.numberOf(ana);
      expect(await store.findRequest(scopeId, requestId("c1"))).not.toBeNull();
      expect(await store.findRequest(scopeId, requestId("c2"))).toBeNull();
      const { stored } = await storedOf(store, ana);
      expect(stored?.register.forgotten).toEqual(["m1"]);
      expect(stored?.register.blocks.map(({ text }) => text)).toEqual([DOG]);
      const gone = new Set(receipt.labels);
      expect(stored?.nodes.some(({ run }) => run.some((label) => gone.has(label)))).toBe(false);
    });

    it("is never given again, with any agent, and to others as before", async () => {
      const { store, users } = suite;
      for (const scope of [ana, coach, scopeOf("bo"), scopeOf("ana", "acme")])
        await users.compose(scope, { requestId: "r", question: "Well?", memories: { m1: TEA } });
      await users.forget(ana, "m1");
      for (const scope of [ana, coach, { ...ana, agentId: "new" as Scope["agentId"] }]) {
        const { memories } = await users.compose(scope, { requestId: "r2", question: "Well?", memories: { m1: TEA } });
        expect(memories).toEqual([]);
        expect((await storedOf(store, scope)).stored?.register.forgotten).toEqual(["m1"]);
      }
      for (const scope of [scopeOf("bo"), scopeOf("ana", "acme")])
        expect((await storedOf(store, scope)).stored?.register).toMatchObject({
          forgotten: [],
          blocks: [{ text: TEA }],
        });
    });

    it("that nobody has, or a user who is not stored, is not sent later, either", async () => {
      const { users } = suite;
      const nothing = {
        labels: [],
        keptBy: [],
        conversations: [],
        prompts: 0,
        newestAt: null,
        responses: [],
        files: "erased",
      };
      expect(await users.forget(ana, "m1")).toEqual(nothing);
      expect(await users.forget(ana, "m1")).toEqual(nothing);
      const { memories } = await users.compose(ana, {
        requestId: "r",
        question: "Well?",
        memories: { m1: TEA, m2: DOG },
      });
      expect(memories.map((memory) => memory.memoryId)).toEqual(["m2"]);
    });

    it("goes where a conversation carries it on to a later start", async () => {
      const { users } = suite;
      await talk("c", [{ memories: { m1: TEA, m2: DOG } }, {}, { memories: { m2: DOG } }]);
      const window = [
        { role: "user", content: "c: question 2?" },
        { role: "assistant", content: "I see." },
      ];
      const { turn } = await users.compose(ana, {
        requestId: "w",
        question: "And after that?",
        memories: { m1: TEA, m3: "Ana runs." },
        conversation: "c",
        history: window,
      });
      expect([...labelsIn(turn.injection)].length).toBeGreaterThan(0);
      await users.forget(ana, "m1");
      expect(await suite.placesOf(TEA)).toEqual([]);
      expect(await turnsOf("c")).toBe(0);
    });

    it("that a turn retrieved and did not give is not named by it any more", async () => {
      const { users } = suite;
      await talk("c", [{ memories: { m2: DOG } }, {}]);
      await talk("d", [{ memories: { m1: TEA } }]);
      const scopeId = await users.numberOf(ana);
      const read = async () => (await suite.store.loadConversation(scopeId, conversationId("c"))).turns;
      const before = await read();
      // Retrieved as the second memory, and held back.
      const text = `update turns set turn = replace(turn, '"requested":[1]', '"requested":[1,2]') where id = 1`;
      await suite.database.write([{ text, values: [] }]);
      expect((await read())[0]?.requested).toEqual([1, 2]);
      const receipt = await users.forget(ana, "m1");
      expect(receipt.labels).toEqual([2]);
      expect(receipt.conversations.map((one) => one.conversationId)).toEqual(["d"]);
      expect(await read()).toEqual(before);
    });

    it.each(SAYING)("goes where %s says it word for word", async (_name, message) => {
      const { users } = suite;
      await users.compose(ana, { requestId: "r", question: "Well?", memories: { m1: TEA } });
      await talk("c", [{}, {}, {}]);
      const before = ["c: question 0?", "I see.", "c: question 1?", "I see."];
      await users.compose(ana, {
        requestId: "s",
        question: "Hm?",
        memories: {},
        conversation: "c",
        history: [...before, message(TEA)],
      });
      await talk("d", [{}]);
      const single = { requestId: "t", question: "Hm?", memories: {} };
      await users.compose(ana, { ...single, history: [message(TEA)] });
      await users.compose(ana, { ...single, requestId: "u", history: [message(DOG)] });
      const receipt = await users.forget(ana, "m1");
      expect(receipt.conversations.map((one) => one.conversationId)).toEqual(["c"]);
      expect(receipt.prompts).toBe(3);
      expect(await suite.placesOf(TEA)).toEqual([]);
      const scopeId = await users.numberOf(ana);
      expect(await suite.store.findRequest(scopeId, requestId("t"))).toBeNull();
      expect(await suite.store.findRequest(scopeId, requestId("u"))).not.toBeNull();
      expect([await turnsOf("c"), await turnsOf("d")]).toEqual([3, 1]);
    });

    it("goes where instructions say it, in each conversation and each single prompt", async () => {
      const { users } = suite;
      const system = `Know this: ${TEA}`;
      await users.compose(ana, { requestId: "r", question: "Well?", memories: { m1: TEA } });
      await talk("c", [{}, { system }, { system }]);
      await users.compose(ana, { requestId: "s", question: "Well?", memories: {}, system });
      const receipt = await users.forget(ana, "m1");
      expect(receipt.prompts).toBe(4);
      expect(await suite.placesOf(TEA)).toEqual([]);
      expect(await turnsOf("c")).toBe(1);
      expect(await suite.rows("messages")).toHaveLength(2);
    });

    it("goes with every agent of the user, by texts of any of them and by those that are named", async () => {
      const { users } = suite;
      await users.compose(ana, { requestId: "r", question: "Well?", memories: { m1: TEA } });
      await talk("c", [{}, { question: `Is it so? ${TEA}` }], coach);
      await talk("d", [{}, { question: "Ana hates coffee." }], coach);
      const receipt = await users.forget(ana, "m1", ["Ana hates coffee.", ""]);
      expect(receipt.conversations.map((one) => [one.agentId, one.conversationId]).sort()).toEqual([
        ["coach", "c"],
        ["coach", "d"],
      ]);
      expect([await turnsOf("c", coach), await turnsOf("d", coach)]).toEqual([1, 1]);
      expect(await suite.placesOf(TEA)).toEqual([]);
    });

    it("leaves a text that another memory has, too", async () => {
      const { store, users } = suite;
      await talk("c", [{ memories: { m1: TEA, m2: TEA } }, { question: `Is it so? ${TEA}` }]);
      const before = await storedOf(store, ana);
      expect((await users.forget(ana, "m1")).labels).toEqual([]);
      const after = await storedOf(store, ana);
      expect(after.stored?.register.blocks).toEqual(before.stored?.register.blocks);
      expect(await turnsOf("c")).toBe(2);
      await users.forget(ana, "m2");
      expect(await suite.placesOf(TEA)).toEqual([]);
    });

    it("names the responses that were given it", async () => {
      const { store, users } = suite;
      await talk("c", [{}, { memories: { m1: TEA } }, {}]);
      const scopeId = await users.numberOf(ana);
      for (const n of [0, 1, 2]) await store.keepResponse(scopeId, requestId(`c${n}`), `resp-${n}`, "conv");
      expect((await users.forget(ana, "m1")).responses.toSorted()).toEqual(["conv", "resp-1", "resp-2"]);
      expect(await store.findResponse(scopeId, "resp-1")).toBeNull();
      expect(await store.findResponse(scopeId, "resp-0")).toBe("c0");
    });

    it("may be said again by the client, and then is the client's", async () => {
      const { users } = suite;
      await talk("c", [{ memories: { m1: TEA } }]);
      await users.forget(ana, "m1");
      await users.compose(ana, { requestId: "r", question: `I say: ${TEA}`, memories: {}, conversation: "c" });
      expect(await suite.placesOf(TEA)).toEqual(["messages.message"]);
      expect(await turnsOf("c")).toBe(1);
    });
  });

  describe("what is old", () => {
    const suite = new SuiteStore(open);
    const MINUTE = 60_000;
    const at = (minutes: number) => NOW + minutes * MINUTE;

    it("goes: conversations that were not used since, single prompts, and memories that nothing names", async () => {
      const { store, users } = suite;
      const said = (name: string, minutes: number, memory: string, conversation?: string) =>
        users.compose(ana, {
          requestId: name,
          question: `${name}?`,
          memories: { [memory]: `Fact ${memory}.` },
          at: at(minutes),
          system: `For ${name}.`,
          ...(conversation === undefined ? {} : { conversation }),
        });
      await said("r1", 0, "m1", "old");
      await said("r2", 1, "m2", "used");
      await said("r3", 2, "m3");
      await said("r4", 10, "m4", "used");
      await said("r5", 11, "m5");
      expect(await users.expire(ana, at(0))).toBe(0);
      expect(await users.expire(ana, at(5))).toBe(2);
      expect(storedCounts(await store.exportUser(ana))).toMatchObject({ conversations: 1, turns: 3, requests: 3 });
      const { stored } = await storedOf(store, ana);
      expect(stored?.register.blocks.map(({ text }) => text)).toEqual(["Fact m2.", "Fact m4.", "Fact m5."]);
      expect(stored?.register.forgotten).toEqual([]);
      for (const gone of ["Fact m1.", "r1?", "For r1.", "Fact m3.", "r3?", "For r3."])
        expect(await suite.placesOf(gone)).toEqual([]);
      for (const kept of ["Fact m2.", "r2?", "For r2."]) expect(await suite.placesOf(kept)).not.toEqual([]);
      await users.compose(ana, {
        requestId: "r6",
        question: "And?",
        memories: { m1: "Fact m1." },
        conversation: "used",
      });
      expect((await storedOf(store, ana)).stored).toEqual(users.state(ana)?.stored());
    });

    it("leaves the context index, also where newer prompts have its memories", async () => {
      const { store, users } = suite;
      const both = { m1: TEA, m2: DOG };
      await users.compose(ana, { requestId: "r1", question: "Well?", memories: { m1: TEA }, at: at(0) });
      await users.compose(ana, { requestId: "r2", question: "And?", memories: both, at: at(9) });
      expect(await users.expire(ana, at(5))).toBe(1);
      const { stored } = await storedOf(store, ana);
      const live = stored?.nodes.filter((node) => node.live > 0);
      expect(live?.map((node) => node.live)).toEqual([1]);
      expect(stored?.register.blocks.map(({ text }) => text)).toEqual([TEA, DOG]);
    });

    it("goes with a scope that has nothing else, and with its user", async () => {
      const { store, users } = suite;
      await users.compose(ana, { requestId: "r1", question: "Well?", memories: { m1: TEA }, at: at(0) });
      await users.compose(coach, { requestId: "r1", question: "Well?", memories: { m1: TEA }, at: at(9) });
      const before = await store.begin(ana, NOW);
      expect(await users.expire(ana, at(5))).toBe(1);
      expect(await store.scopesOf(ana)).toEqual([coach]);
      expect(await store.find(ana)).toBeNull();
      expect(await store.begin(ana, NOW)).toBe(before);
      await users.compose(ana, { requestId: "r2", question: "Well?", memories: { m1: TEA }, at: at(10) });
      expect((await storedOf(store, ana)).stored).toEqual(users.state(ana)?.stored());
      expect(await users.expire(ana, at(20))).toBe(2);
      expect(await store.scopesOf(ana)).toEqual([]);
      for (const table of ["scopes", "changes", "conversations", "turns", "messages", "requests", "prompts"] as const)
        expect(await suite.rows(table), table).toEqual([]);
      expect(await store.begin(ana, NOW)).toBeGreaterThan(before);
    });

    it("leaves what is never to be sent again, and what the source has yet to delete", async () => {
      const { store, users } = suite;
      await users.compose(ana, {
        requestId: "r1",
        question: "Well?",
        memories: { m1: TEA, m2: DOG },
        conversation: "c",
      });
      await store.forget(ana, "m1" as never, { texts: [], isInSource: true, at: NOW });
      expect(await store.usersWithOldTurns(at(5), 0)).toMatchObject({ users: [{ userId: "ana" }] });
      // No turn is left of it, and the conversation goes all the same.
      expect(await users.expire(ana, at(5))).toBe(0);
      expect(await store.usersWithOldTurns(at(5), 0)).toMatchObject({ users: [] });
      expect(await suite.rows("conversations")).toEqual([]);
      expect((await storedOf(store, ana)).stored?.register.forgotten).toEqual(["m1"]);
      expect(await store.pendingInSource(ana)).toEqual({ everything: false, memoryIds: ["m1"] });
    });

    it("goes once the state of the scope is another process's, too", async (context) => {
      const { users, store } = suite;
      const other = await suite.other(context);
      await users.compose(ana, { requestId: "r1", question: "Well?", memories: { m1: TEA }, at: at(0) });
      await other.compose(ana, { requestId: "r2", question: "Well?", memories: { m1: TEA }, at: at(1) });
      await users.expire(ana, at(5));
      await other.compose(ana, { requestId: "r3", question: "Well?", memories: { m2: DOG }, at: at(6) });
      const { stored } = await storedOf(store, ana);
      expect(stored?.register.blocks.map(({ text }) => text)).toEqual([DOG]);
    });
  });
}
