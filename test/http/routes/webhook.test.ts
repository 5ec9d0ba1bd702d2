import { describe, expect, it } from "vitest";
import { callerOf, sendWith } from "../guards/callers.js";
import { type Composed, servedApp } from "../server/served-app.js";
import { columnsHolding, filesHolding } from "./stored-rows.js";

const TOKEN = "a token that Mem0 is told";
const PATH = `/webhooks/mem0?token=${encodeURIComponent(TOKEN)}`;
const OLD = "Ada hides the key under the flower pot";
const NEW = "Ada hides the key in the drawer";
const event = (kind: string, more: object = {}) => ({ event_details: { id: "m-key", event: kind, ...more } });
const updated = event("UPDATE", { data: { memory: NEW } });
const key = { id: "m-key", memory: OLD };
const tea = { id: "m-tea", memory: "Ada drinks green tea" };

describe("POST /webhooks/mem0", () => {
  const app = servedApp({ environment: { MEMPREFIX_WEBHOOK_TOKEN: TOKEN } });
  const post = async (body: unknown, path = PATH) => (await app.send("POST", path, body)).status;
  const texts = (answer: Composed) => JSON.stringify(answer.messages);

  it("forgets what was deleted, for every user and agent that has it, out of every byte", async () => {
    const users = [{ user_id: "ada" }, { user_id: "ada", agent_id: "planner" }, { user_id: "bob" }];
    for (const user of users) await app.compose({ ...user, query: "Where?", memories: [key, tea] });
    await app.compose({ user_id: "cy", query: "Where?", memories: [tea] });
    expect(await post(event("DELETE"))).toBe(204);
    expect([...columnsHolding(app.database, OLD), ...filesHolding(app.database, OLD)]).toEqual([]);
    for (const user of users) {
      const answer = await app.compose({ ...user, query: "And now?", memories: [key, tea] });
      expect(answer.blocks.map(({ memory_id }) => memory_id)).toEqual(["m-tea"]);
    }
    const { forgotten_memories } = JSON.parse((await app.send("GET", "/users/cy/export")).text);
    expect(forgotten_memories).toEqual([]);
  });

  it("takes an updated text for the memory's own from then on: the old one is not carried over", async () => {
    const ask = { user_id: "ada", query: "Where?", policy: "carry-over", memory_budget_tokens: 100_000 };
    const long = { ...tea, memory: `${tea.memory}. `.repeat(200) };
    const known = [key, long];
    await app.compose({ ...ask, memories: known });
    expect(texts(await app.compose({ ...ask, memories: [long] }))).toContain(OLD);
    expect(await post(updated)).toBe(204);
    expect(texts(await app.compose({ ...ask, memories: [long] }))).not.toContain(OLD);
    const before = (await app.send("GET", "/users/ada/export")).text;
    expect(before).toContain(NEW);
    // Said twice, it is as if it had been said once.
    expect(await post(updated)).toBe(204);
    expect((await app.send("GET", "/users/ada/export")).text).toBe(before);
  });

  it.each([
    ["the name of its webhook", "memory_delete", "memory_update"],
    ["the name of its webhook, as the SDK has it", "MEMORY:DELETE", "MEMORY:UPDATE"],
    ["small letters", "delete", "update"],
    ["what has been done", "deleted", " Updated "],
  ])("takes an event by %s, and an integer for an id", async (_how, deletion, update) => {
    const asked = { user_id: "ada", query: "Where?", memories: [{ id: 7, memory: OLD }, tea] };
    await app.compose(asked);
    const of = (kind: string, more: object = {}) => ({ event_details: { id: 7, event: kind, ...more } });
    expect(await post(of(update, { memory: NEW }))).toBe(204);
    expect((await app.send("GET", "/users/ada/export")).text).toContain(NEW);
    expect(await post(of(deletion))).toBe(204);
    expect(texts(await app.compose(asked))).not.toContain(OLD);
    expect(columnsHolding(app.database, OLD)).toEqual([]);
  });

  it("takes an event whose metadata is not safe to parse", async () => {
    const asked = { user_id: "ada", query: "Where?", memories: [key, tea] };
    const unsafe = [`${"[".repeat(200)}${"]".repeat(200)}`, '{"__proto__":{"id":"m-tea"}}'];
    for (const metadata of unsafe) {
      const of = (kind: string, more = "") =>
        `{"event_details":{"id":"m-key","event":"${kind}","data":{"metadata":${metadata}${more}}}}`;
      await app.compose(asked);
      expect(await post(of("UPDATE", `,"memory":"${NEW}"`))).toBe(204);
      expect((await app.send("GET", "/users/ada/export")).text).toContain(NEW);
      expect(await post(of("DELETE"))).toBe(204);
      expect([...columnsHolding(app.database, OLD), ...columnsHolding(app.database, NEW)]).toEqual([]);
      expect((await app.send("DELETE", "/users/ada")).status).toBe(200);
    }
  });

  it.each([
    ["white space", " "],
    ["nothing", ""],
    ["half of a surrogate pair", "the key \ud83d"],
  ])("sends the old text no more where the new one cannot be sent: %s", async (_what, memory) => {
    const ask = { user_id: "ada", query: "Where?", policy: "carry-over", memory_budget_tokens: 100_000 };
    const long = { ...tea, memory: `${tea.memory}. `.repeat(200) };
    await app.compose({ ...ask, memories: [key, long] });
    expect(texts(await app.compose({ ...ask, memories: [long] }))).toContain(OLD);
    expect(await post(event("UPDATE", { data: { memory } }))).toBe(204);
    expect(texts(await app.compose({ ...ask, memories: [long] }))).not.toContain(OLD);
  });

  it("does nothing for what it does not know: memories, events, fields", async () => {
    await app.compose({ user_id: "ada", query: "Where?", memories: [tea] });
    const before = (await app.send("GET", "/users/ada/export")).text;
    const events = [updated, event("DELETE"), event("ADD"), event("EXPIRE"), { event_details: { event: "ADD" } }];
    for (const body of events) expect(await post({ ...body, sent_by: "mem0" })).toBe(204);
    expect((await app.send("GET", "/users/ada/export")).text).toBe(before);
  });

  it("updates nothing that was forgotten", async () => {
    await app.compose({ user_id: "ada", query: "Where?", memories: [key] });
    await app.send("DELETE", "/users/ada/memories/m-key");
    expect(await post(updated)).toBe(204);
    expect(columnsHolding(app.database, NEW)).toEqual([]);
  });

  it.each([
    ["no JSON", "{", 400],
    ["nothing", {}, 422],
    ["a deletion of nothing", { event_details: { event: "DELETE" } }, 422],
    ["an update without a text or an end", event("UPDATE"), 422],
    ["an update that says nothing", event("UPDATE", { data: { categories: ["pets"], is_deleted: false } }), 422],
    ["an update to a number", event("UPDATE", { data: { memory: 7 } }), 422],
    ["a deletion of a fraction", { event_details: { event: "DELETE", id: 1.5 } }, 422],
  ])("refuses %s", async (_what, body, status) => {
    expect(await post(body)).toBe(status);
  });

  it("lets nobody in without the token, whatever keys there are; its own tenant is the default one", async () => {
    await app.compose({ user_id: "ada", query: "Where?", memories: [key] });
    const { send, key: apiKey } = callerOf(app, "acme");
    await send("POST", "/compose", { user_id: "ada", query: "Where?", memories: [key] });
    for (const path of ["/webhooks/mem0", "/webhooks/mem0?token=", `${PATH}x`, `/webhooks/mem0?token=${apiKey}`])
      expect(await post(event("DELETE"), path)).toBe(401);
    expect((await send("POST", "/webhooks/mem0", event("DELETE"))).status).toBe(401);
    expect(columnsHolding(app.database, OLD)).toEqual(["changes.changes", "turns.section"]);
    const bearer = { authorization: `Bearer ${TOKEN}` };
    for (const scheme of ["Bearer", "bearer", "BEARER ", "bEaReR"]) {
      const shown = await sendWith(
        app,
        { authorization: `${scheme} ${TOKEN}` },
        "POST",
        "/webhooks/mem0",
        event("ADD"),
      );
      expect([scheme, shown.status]).toEqual([scheme, 204]);
    }
    for (const authorization of [TOKEN, `Basic ${TOKEN}`, `Bearer${TOKEN}`, `Bearer ${TOKEN.slice(1)}`, "Bearer"])
      expect((await sendWith(app, { authorization }, "POST", "/webhooks/mem0", event("ADD"))).status).toBe(401);
    expect((await sendWith(app, bearer, "POST", "/webhooks/mem0", event("DELETE"))).status).toBe(204);
    expect((await send("GET", "/users/ada/export")).text).toContain(OLD);
    expect((await sendWith(app, bearer, "GET", "/users/ada/export")).status).toBe(401);
  });

  it("puts the token into no log, no metric and no answer", async () => {
    await post(updated);
    await post(updated, `${PATH}x`);
    const { text } = await app.send("POST", PATH, {});
    const metrics = (await app.send("GET", "/metrics")).text;
    const outside = [JSON.stringify(app.log), metrics, text].join();
    for (const form of [TOKEN, encodeURIComponent(TOKEN)]) expect(outside).not.toContain(form);
    expect(outside).toContain("/webhooks/mem0");
  });
});

describe("POST /webhooks/mem0 where no token is set", () => {
  const app = servedApp();

  it("is not there", async () => {
    expect((await app.send("POST", "/webhooks/mem0?token=", event("DELETE"))).status).toBe(404);
    expect((await callerOf(app, "acme").send("POST", "/webhooks/mem0", event("DELETE"))).status).toBe(404);
  });
});
