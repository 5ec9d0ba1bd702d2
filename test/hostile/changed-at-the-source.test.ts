import { describe, expect, it } from "vitest";
import { openRestMem0 } from "../../src/memory/rest-mem0.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { columnsHolding, filesHolding } from "../http/routes/stored-rows.js";
import { type Composed, servedApp } from "../http/server/served-app.js";
import { restMem0Server, type ServedMemory } from "../memory/rest-mem0-server.js";
import { conversationOf, serve as serveAlone } from "./conversations.js";

/*
 * A memory that Mem0 updated or deleted in the middle of a conversation, and that no search finds again.
 */

const OLD = "Ada's dog is called Rex";
const NEW = "Ada's dog is called Bo";
const dog = { id: "dog", memory: OLD, user_id: "ada" };
const tea = { id: "tea", memory: "Ada drinks green tea", user_id: "ada" };
const TOKEN = "a token that Mem0 is told";

describe("a memory that changes at its source during a conversation", () => {
  const mem0 = restMem0Server();
  const engine = openAiEngine();
  const app = servedApp({
    source: () => openRestMem0({ url: mem0.url }),
    upstream: engine,
    environment: { MEMPREFIX_WEBHOOK_TOKEN: TOKEN, MEMPREFIX_RETENTION: "keep" },
  });

  const serve = (...memories: ServedMemory[]) => serveAlone(mem0, ...memories);
  const conversation = (id: string) => conversationOf(app, id);
  /** A conversation that was given both, of which searches find one from then on. */
  const begun = async (id: string, say = conversation(id)) => {
    serve(dog, tea);
    mem0.finds = null;
    expect((await say("one")).all).toContain(OLD);
    mem0.finds = ["tea"];
    return say;
  };

  /** What reaches the engine, as {@link conversation} gives prompts. */
  const chat = (id: string) => {
    const composed = async (body: Readonly<Record<string, unknown>>) => {
      const { user_id: user, messages, ...memprefix } = body;
      expect((await app.send("POST", "/v1/chat/completions", { user, messages, memprefix })).status).toBe(200);
      return { messages: engine.requests.at(-1)?.body.messages ?? [] } as unknown as Composed;
    };
    return conversationOf({ compose: composed }, id);
  };

  it.each(["compose", "chat"])("is given once more when it was updated: %s", async (door) => {
    const say = await begun("c", door === "chat" ? chat("c") : undefined);
    serve({ ...dog, memory: NEW }, tea);
    const next = await say("two");
    expect(next.last).toContain(`</memories>\\nUpdate: ${NEW}\\n`);
    expect(next.last).not.toContain(OLD);
    expect((await say("three")).last).not.toContain("called");
    serve({ ...dog, memory: `${NEW}, and he is two` }, tea);
    expect((await say("four")).last).toContain(`</memories>\\nUpdate: ${NEW}, and he is two\\n`);
    serve(dog, tea);
    expect((await say("five")).last).toContain(`</memories>\\nUpdate: ${OLD}\\n`);
  });

  it.each([404, null] as const)(
    "leaves every prompt and every byte when it was deleted: Mem0 says %s",
    async (missing) => {
      const say = await begun("c");
      mem0.missing = missing;
      serve(tea);
      const next = await say("two");
      expect(next.all).not.toContain(OLD);
      expect(next.all).toContain(tea.memory);
      expect((await say("three")).all).not.toContain(OLD);
      expect([...columnsHolding(app.database, OLD), ...filesHolding(app.database, OLD)]).toEqual([]);
      const other = { user_id: "ada", query: "Is Ada's dog called Rex?" };
      mem0.isDown = true;
      expect(JSON.stringify((await app.compose(other)).messages)).not.toContain(OLD);
    },
  );

  it("leaves every prompt in whatever words Mem0 says that it is gone", async () => {
    for (const noRoute of [
      { error: "Memory not found!" },
      { detail: "Memory with id 'dog' not found" },
      { detail: "No Memory matches the given query." },
      { detail: "Not found." },
      { detail: { error: "memory_not_found" } },
      { error: { code: "MEMORY_NOT_FOUND", path: "/v1/memories/dog" } },
      { message: "The memory dog does not exist" },
      "memory was not found",
    ]) {
      const what = JSON.stringify(noRoute);
      const say = await begun(what);
      serve(tea);
      mem0.missing = { noRoute };
      expect((await say("two")).all, what).not.toContain(OLD);
      mem0.missing = 404;
      expect((await app.send("DELETE", "/users/ada")).status).toBe(200);
    }
  });

  it("leaves the conversation when it expired, was archived or superseded there by something unknown", async () => {
    const ends: readonly (readonly [string, object])[] = [
      ["expired", { expiration_date: "2020-01-01" }],
      ["archived", { metadata: { lifecycle_state: "archived" } }],
      ["superseded", { lifecycle_state: "superseded", replaced_by: "new" }],
    ];
    for (const [what, end] of ends) {
      const say = await begun(what);
      serve({ ...dog, ...end }, tea);
      for (const turn of ["two", "three"]) expect((await say(turn)).all, what).not.toMatch(/Rex|Update/);
    }
  });

  it("stays as it is where Mem0 does not say what became of it", async () => {
    const silent: readonly (readonly [string, () => void])[] = [
      ["it is there", () => serve(dog, tea)],
      ["it is another user's", () => serve({ ...dog, user_id: "bob", memory: NEW }, tea)],
      ["it is no memory", () => serve({ ...dog, memory: "" }, tea)],
      ...[
        { detail: "Not Found" },
        { message: "no Route matched with those values" },
        { error: "Not Found", path: "/memories/dog" },
        { message: "Route GET:/memories/dog not found", statusCode: 404 },
        { detail: "Cannot GET /memory/memories/dog" },
        { message: "Route GET:/memory/memories/dog not found", statusCode: 404 },
        { error: "Not Found", message: "https://memory.example.org/memories/dog was not found on this server" },
        { error: "service memory not found" },
        { detail: "Memory store is not configured" },
        "no healthy upstream for memory",
        "404 page not found",
        null,
      ].map(
        (noRoute) =>
          [`no such route: ${JSON.stringify(noRoute)}`, () => Object.assign(mem0, { missing: { noRoute } })] as const,
      ),
      ["everything fails", () => Object.assign(mem0, { isDown: true })],
    ];
    for (const [what, happen] of silent) {
      const say = await begun(what);
      happen();
      if (what.startsWith("no such route")) serve(tea);
      const { all, last } = await say("two");
      expect(all, what).toContain(OLD);
      expect(last, what).not.toMatch(/Update|Bo/);
      Object.assign(mem0, { missing: 404, isDown: false });
    }
  });

  it("is not asked for where the caller brought it: Mem0 need not know it", async () => {
    serve(tea);
    const say = conversation("c");
    await say("one", { memories: [dog] });
    const { all } = await say("two");
    expect(all).toContain(OLD);
    expect((await say("three")).all).toContain(OLD);
    expect(mem0.requests.filter(({ path }) => path === "/memories/dog")).toEqual([]);
  });

  it("is not asked for again where a search just found it; of many, so many a prompt, all in turn", async () => {
    const many = Array.from({ length: 40 }, (_, n) => ({ id: `m-${n}`, memory: `Fact ${n} is this.`, user_id: "ada" }));
    serve(...many);
    const say = conversation("c");
    await say("one", { top_k: 40 });
    expect(mem0.requests.filter(({ method }) => method === "GET")).toHaveLength(0);
    mem0.finds = [];
    for (const turn of ["two", "three", "four"]) {
      mem0.requests.length = 0;
      await say(turn);
      expect(mem0.requests.filter(({ method }) => method === "GET").length).toBeLessThanOrEqual(16);
    }
    serve(...many.slice(1));
    const texts = [];
    for (const turn of ["five", "six", "seven"]) texts.push((await say(turn)).all.includes(many[0]?.memory ?? ""));
    expect(texts.at(-1)).toBe(false);
  });

  it("leaves the conversation by what the webhook brings, with its text or without", async () => {
    const ends: readonly (readonly [string, object])[] = [
      ["the same text", { data: { memory: OLD, lifecycle_state: "archived" } }],
      ["another text", { data: { memory: NEW, is_deleted: true } }],
      ["no text", { data: { expiration_date: "2020-01-01" } }],
      ["a text that is none", { data: { memory: "", is_deleted: true } }],
      ["a null text", { data: { memory: null, replaced_by: "unknown" } }],
      ["no data", { is_deleted: true }],
      ["a state beside the data", { lifecycle_state: "superseded", data: { memory: OLD } }],
    ];
    for (const [what, more] of ends) {
      const say = conversation(what);
      await say("one", { memories: [dog, tea] });
      const event = { event_details: { id: "dog", event: "UPDATE", ...more } };
      for (let times = 0; times < 2; times++) {
        const taken = await app.send("POST", `/webhooks/mem0?token=${encodeURIComponent(TOKEN)}`, event);
        expect([what, taken.status]).toEqual([what, 204]);
      }
      for (const turn of ["two", "three"])
        expect((await say(turn, { memories: [tea] })).all, what).not.toMatch(/Rex|Bo|Update/);
    }
  });

  it("is updated by the memory that the webhook says took its place", async () => {
    const say = conversation("c");
    const bo = { id: "bo", memory: NEW, user_id: "ada" };
    await say("one", { memories: [dog, tea] });
    await conversation("other")("one", { memories: [bo] });
    const event = { event_details: { id: "dog", event: "UPDATE", data: { replaced_by: "bo" } } };
    await app.send("POST", `/webhooks/mem0?token=${encodeURIComponent(TOKEN)}`, event);
    expect((await say("two", { memories: [tea] })).last).toContain(`</memories>\\nUpdate: ${NEW}\\n`);
  });
});

describe("a memory that breaks the operator's conditions since it was given", () => {
  const mem0 = restMem0Server();
  const app = servedApp({
    source: () => openRestMem0({ url: mem0.url }),
    environment: { MEMPREFIX_RETENTION: "keep", MEMPREFIX_MEM0_SEARCH: '{"filters":{"visibility":"public"}}' },
  });

  it("has none of its new text in a prompt", async () => {
    const say = async (memory: ServedMemory, turns: number) => {
      mem0.memories.set(memory.id, memory);
      const messages = Array.from({ length: 2 * turns - 1 }, (_, at) => ({
        role: at % 2 === 0 ? "user" : "assistant",
        content: `Said ${at}`,
      }));
      return JSON.stringify((await app.compose({ user_id: "ada", conversation_id: "c", messages })).messages);
    };
    const of = (visibility: string) => ({ metadata: { visibility } });
    expect(await say({ ...dog, ...of("public") }, 1)).toContain(OLD);
    mem0.finds = [];
    expect(await say({ ...dog, memory: NEW, ...of("private") }, 2)).not.toContain(NEW);
    expect(await say({ ...dog, memory: NEW, ...of("public") }, 3)).toContain(NEW);
  });
});
