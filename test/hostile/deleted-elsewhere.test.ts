/*
 * Attacked: two services on one directory. What one deletes, the other had in memory, or was just looking up; and requests whose ids
 * both are sent. Broke: a prompt went out before its commit found it stale; a user came back by a search, a batch or an addition that
 * was under way; a repeated id was a 500.
 */
import { describe, expect, it } from "vitest";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { Gate } from "./owned-memories.js";
import { twoServices } from "./two-services.js";

const SECRET = "The blue safe opens with 4821";
const MEMORY = { id: "m-1", memory: SECRET };
const inConversation = { memprefix: { conversation_id: "talk" } };

/** A conversation of two turns that both services have in memory. */
async function knownToBoth({ one, other }: ReturnType<typeof twoServices>) {
  const first = [{ role: "user", content: "What opens it?" }];
  await one.chat("", { messages: first, ...inConversation });
  const second = [...first, { role: "assistant", content: "Indeed." }, { role: "user", content: "And now?" }];
  await other.chat("", { messages: second, ...inConversation });
  return [...second, { role: "assistant", content: "Indeed." }, { role: "user", content: "Once more?" }];
}

describe("what one service deletes, the other no longer sends", () => {
  const engine = openAiEngine();
  const services = twoServices(engine);
  const sent = () => engine.requests.map(({ raw }) => raw).join("\n");

  it("a memory that stands in a conversation", async () => {
    const id = services.source.keep("ada", SECRET);
    const messages = await knownToBoth(services);
    expect(sent()).toContain(SECRET);
    engine.requests.length = 0;
    expect((await services.one.send("DELETE", `/users/ada/memories/${id}`)).status).toBe(200);
    expect((await services.other.chat("", { messages, ...inConversation })).status).toBe(200);
    expect(engine.requests.length).toBeGreaterThan(0);
    expect(sent()).not.toContain(SECRET);
  });

  it("a user whose memories were just being looked up", async () => {
    services.source.keep("ada", SECRET);
    const search = new Gate();
    services.source.hold = { search: search.pass };
    const chat = services.other.chat("What opens it?");
    await search.reached;
    services.source.hold = {};
    expect((await services.one.send("DELETE", "/users/ada")).status).toBe(200);
    search.open();
    expect((await chat).status).toBe(200);
    expect(engine.requests.length).toBeGreaterThan(0);
    expect(sent()).not.toContain(SECRET);
  });
});

describe("two services on one directory", () => {
  const engine = openAiEngine();
  const services = twoServices(engine);

  it("answer a repeated id with the same bytes, whichever is asked, also while both are asked at once", async () => {
    const bodies = Array.from({ length: 60 }, (_, n) => ({
      user_id: `user-${n % 3}`,
      request_id: `r-${n}`,
      query: "?",
      memories: [{ id: `m-${n}`, memory: `Fact ${n}` }, MEMORY],
    }));
    // Both have an older state of each user in memory.
    for (const service of [services.one, services.other])
      for (const body of bodies.slice(0, 3)) await service.send("POST", "/compose", body);
    const racing = bodies.flatMap((body) =>
      [services.one, services.other, services.one].map(async (service) => ({
        id: body.request_id,
        ...(await service.send("POST", "/compose", body)),
      })),
    );
    const answers = await Promise.all(racing);
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    for (const { request_id } of bodies)
      expect(new Set(answers.filter(({ id }) => id === request_id).map(({ text }) => text)).size).toBe(1);
    expect(services.faults).toEqual([]);
  });

  it("refuse what a batch brought along for a user who was deleted while it was under way, and store none of it", async () => {
    services.source.keep("bob", "Bob has a boat");
    const search = new Gate();
    services.source.hold = { search: search.pass };
    const batch = services.other.send("POST", "/compose/batch", {
      requests: [
        { user_id: "ada", request_id: "given", query: "?", memories: [MEMORY] },
        { user_id: "bob", request_id: "searched", query: "?" },
      ],
    });
    await search.reached;
    services.source.hold = {};
    expect((await services.one.send("DELETE", "/users/ada")).status).toBe(200);
    expect((await services.one.send("DELETE", "/users/bob")).status).toBe(200);
    search.open();
    const { text } = await batch;
    expect(text).toContain('"status":409');
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain("boat");
    expect((await services.one.send("GET", "/users/ada/export")).text).not.toContain(SECRET);
  });

  it("take back what one adds while the other deletes the user, and say so", async () => {
    const add = new Gate();
    services.source.hold = { add: add.pass };
    const adding = services.other.send("POST", "/memories", { user_id: "ada", memories: [SECRET] });
    await add.reached;
    services.source.hold = {};
    expect((await services.one.send("DELETE", "/users/ada")).status).toBe(200);
    services.source.keep("ada", "kept later");
    add.open();
    expect((await adding).status).toBe(409);
    expect(services.source.kept.map(({ text }) => text)).toEqual(["kept later"]);
  });
});
