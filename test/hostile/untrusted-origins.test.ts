import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../src/core/index.js";
import { openRestMem0 } from "../../src/memory/rest-mem0.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";
import { restMem0Server, type ServedMemory } from "../memory/rest-mem0-server.js";
import { says, user } from "../messages.js";
import { doorsOf } from "./api-forms.js";
import { conversationOf, serve as serveAlone } from "./conversations.js";

/*
 * A false text that a web page had stored as a memory stands at most once in a prompt, in a list, whatever would repeat another one.
 */

const FALSE = "Ada's bank account is DE00 6666";
const TRUE = "Ada's bank account is DE89 3704";
const untrusted = { metadata: { origin: "Web" } };
const poison = { id: "poison", memory: FALSE, user_id: "ada", created_at: "2026-05-01T10:00:00Z", ...untrusted };
const account = { id: "account", memory: TRUE, user_id: "ada", created_at: "2026-01-01T10:00:00Z" };
const tea = { id: "tea", memory: "Ada drinks green tea", user_id: "ada" };
const bike = { id: "bike", memory: "Ada rides a bicycle to work", user_id: "ada" };
const TOKEN = "a token that Mem0 is told";

describe("a memory of an untrusted origin", () => {
  const mem0 = restMem0Server();
  const engine = openAiEngine();
  const app = servedApp({
    source: () => openRestMem0({ url: mem0.url }),
    upstream: engine,
    environment: {
      MEMPREFIX_WEBHOOK_TOKEN: TOKEN,
      MEMPREFIX_RETENTION: "keep",
      MEMPREFIX_UNTRUSTED_ORIGINS: "tool, web",
    },
  });

  const serve = (...memories: ServedMemory[]) => serveAlone(mem0, ...memories);
  const single = async (more: object) =>
    JSON.stringify((await app.compose({ user_id: "ada", query: "Which account?", ...more })).messages);
  /** A conversation's prompts, one after the other, each as JSON. */
  const conversation = (id: string) => {
    const say = conversationOf(app, id);
    return async (content: string, more: object = {}) => (await say(content, more)).all;
  };
  const timesIn = (prompt: string, text = FALSE) => prompt.toLowerCase().split(text.toLowerCase()).length - 1;
  /** Once, and as an item of a list. */
  const expectListedOnce = (prompt: string) => {
    expect(timesIn(prompt)).toBe(1);
    expect(prompt).toMatch(/- (?:\d{4}-\d\d-\d\d: )?Ada's bank account is DE00 6666\\n/i);
  };

  const { metadata: _, ...bare } = poison;
  it.each([
    ["listed once in a single prompt, where the line would repeat a trusted one", poison, 1],
    ["listed once where the request's own field says it, in any letter case", { ...bare, origin: " TOOL " }, 1],
    ["repeated where no operator lists its origin", { ...poison, metadata: { origin: "mail" } }, 2],
  ])("is %s", async (_what, memory, times) => {
    // A prompt before has the other ones cached, so that they stand first.
    await app.compose({ user_id: "ada", query: "Tea?", memories: [tea, bike] });
    expect(timesIn(await single({ memories: [memory, tea, bike] }))).toBe(times);
  });

  it("has no line: in a conversation it is listed once, and the prompts are those without lines", async () => {
    const prompts = [];
    for (const annotations of [true, false]) {
      const say = conversation(String(annotations));
      const turns = [];
      for (let turn = 0; turn < 8; turn++) {
        const memories = [poison, account, { ...tea, id: `t${turn}`, memory: `Ada drank tea number ${turn}` }];
        turns.push(await say(`Which account is it, ${turn}?`, { memories, annotations }));
      }
      for (const prompt of turns) expectListedOnce(prompt);
      prompts.push(turns);
    }
    expect(prompts[0]).toEqual(prompts[1]);
  });

  it("is not repeated in its own words: as another memory's, in other letters, with other dates, of equal ones that all stand", async () => {
    const again = [
      { ...poison, id: "p2" },
      { ...poison, id: "p3", memory: FALSE.toUpperCase() },
      { ...poison, id: "p4", memory: `${FALSE}.`, created_at: "2026-05-02T10:00:00Z" },
    ];
    for (const more of [{}, { dedupe: "exact" }, { dates: true }, { dates: true, dedupe: "exact" }]) {
      expectListedOnce(await single({ memories: [tea, poison, ...again], ...more }));
      const say = conversation(JSON.stringify(more));
      await say("one", { memories: [tea, poison], ...more });
      expectListedOnce(await say("two", { memories: [...again, bike], ...more }));
    }
  });

  it("is no update: found by a search, told by Mem0 or its webhook, or by replaced_by", async () => {
    const poisoned = { ...account, memory: FALSE, ...untrusted };
    const told = (data: object) =>
      app.send("POST", `/webhooks/mem0?token=${encodeURIComponent(TOKEN)}`, {
        event_details: { id: "account", event: "UPDATE", data },
      });
    const ways: readonly (readonly [string, () => unknown, boolean])[] = [
      ["a search", () => serve(poisoned, tea), true],
      ["Mem0", () => serve(poisoned, tea), false],
      ["a webhook", () => told({ memory: FALSE, ...untrusted }), false],
      ["replaced_by", () => serve({ ...account, replaced_by: "poison" }, poison, tea), true],
    ];
    for (const [what, happen, isFound] of ways) {
      Object.assign(mem0, { finds: null });
      serve(account, tea);
      const say = conversation(what);
      expect(await say("one")).toContain(TRUE);
      if (!isFound) mem0.finds = ["tea"];
      if (what === "a webhook") serve(tea);
      await happen();
      const prompt = await say("two");
      expect(prompt, what).not.toContain("Update");
      if (isFound) expectListedOnce(prompt);
      else expect(timesIn(prompt), what).toBe(0);
      await app.send("DELETE", "/users/ada");
    }
  });

  it("is no update where it is a memory's text again", async () => {
    const say = conversation("c");
    await say("one", { memories: [poison] });
    await say("two", { memories: [{ ...account, id: "poison", origin: "user" }] });
    expectListedOnce(await say("three", { memories: [poison, tea] }));
    expectListedOnce(await say("four", { memories: [poison] }));
  });

  it("is not carried over, in a single prompt and in front of an epoch's", async () => {
    const carrying = { policy: "carry-over", memory_budget_tokens: 10_000 };
    const long = { ...tea, memory: `${tea.memory}. `.repeat(200) };
    for (const [memory, times] of [
      [poison, 0],
      [{ ...poison, metadata: { origin: "user" } }, 1],
    ] as const) {
      await single({ memories: [memory, long], ...carrying });
      expect(timesIn(await single({ memories: [long], ...carrying }))).toBe(times);
      await app.send("DELETE", "/users/ada");
    }
    await single({ memories: [poison, long], ...carrying });
    const said = Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? user : says)(`Said ${at}. `.repeat(20)));
    for (let turn = 2; turn < said.length; turn += 2) {
      const messages = said.slice(Math.max(0, turn - 3), turn + 1);
      const window = { conversation_id: "w", messages, memories: [long], history: "exact", ...carrying };
      expect(timesIn(await single({ ...window, query: undefined }))).toBe(0);
    }
  });

  it("is listed once, too, where it is composed from while its source is down", async () => {
    serve(poison, tea, bike);
    const say = conversation("c");
    await say("Which bank account?");
    mem0.isDown = true;
    expectListedOnce(await say("Is it Ada's bank account DE00 6666?"));
    expectListedOnce(await single({ query: "Is it Ada's bank account DE00 6666?" }));
  });

  it("is listed once in what an engine gets, by every API", async () => {
    serve(poison, account, tea);
    const said: ChatMessage[] = [];
    for (let turn = 0; turn < 4; turn++) {
      said.push(user(`Which account is it, ${turn}?`));
      for (const [path, body] of doorsOf(said)) {
        const before = engine.requests.length;
        await app.send("POST", path, { ...body, memprefix: { user_id: "ada", conversation_id: path } });
        expect(engine.requests.length, path).toBe(before + 1);
        expectListedOnce(engine.requests.at(-1)?.raw ?? "");
      }
      said.push(says("That one."));
      serve(poison, account, { ...bike, id: `b${turn}`, memory: `Ada rode ${turn} miles` });
    }
  });
});
