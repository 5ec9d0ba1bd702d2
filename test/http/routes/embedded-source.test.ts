import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { addResult, memoriesResult } from "../../../src/http/contracts/user-contract.js";
import { openEmbeddedMem0 } from "../../../src/memory/embedded-mem0.js";
import { servedApp } from "../server/served-app.js";

const SECRET = "Ada hides the key under the third flower pot";
const OTHER = "Ada lost the key of her bicycle";

describe("the service over embedded Mem0", () => {
  const app = servedApp({
    source: (dataDir) => openEmbeddedMem0({ dataDir, threshold: 0 }),
  });
  const add = async (body: object, ...memories: string[]) => {
    const exchange = await app.send("POST", "/memories", { user_id: "ada", ...body, memories });
    expect(exchange.status).toBe(201);
    return addResult.parse(JSON.parse(exchange.text)).results;
  };
  const ask = async (body: object = {}) => app.compose({ user_id: "ada", query: "Where is the key?", ...body });
  const filesHolding = (text: string) =>
    readdirSync(app.dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(text))
      .map(({ name }) => name);

  it("composes from what was added, and forgets it in the source's files too", async () => {
    const added = await add({}, SECRET, OTHER);
    expect(added.map(({ memory }) => memory)).toEqual([SECRET, OTHER]);
    const answer = await ask();
    expect(answer.blocks.map(({ memory_id }) => memory_id)).toEqual(added.map(({ id }) => id));
    expect(answer.messages[0]?.["content"]).toContain(SECRET);
    expect(filesHolding(SECRET)).not.toEqual([]);

    const forgotten = await app.send("DELETE", `/users/ada/memories/${added[0]?.id}`);
    expect(JSON.parse(forgotten.text)).toMatchObject({ labels: [1], deleted_from_source: true });
    expect(filesHolding(SECRET)).toEqual([]);
    expect(filesHolding("flower pot")).toEqual([]);
    expect((await ask()).blocks.map(({ memory_id }) => memory_id)).toEqual([added[1]?.id]);
    const again = await app.send("DELETE", `/users/ada/memories/${added[0]?.id}`);
    expect(JSON.parse(again.text)).toMatchObject({ labels: [], deleted_from_source: false });
  });

  it("lists and searches a user's memories, of one agent or of none", async () => {
    const [secret, other] = await add({}, SECRET, OTHER);
    const [told] = await add({ agent_id: "planner" }, "Ada plans a journey");
    await app.send("POST", "/memories", { user_id: "bob", memories: ["Bob sings"] });
    const found = async (query: string) => {
      const { status, text } = await app.send("GET", `/memories?${query}`);
      return {
        status,
        ids: status === 200 ? memoriesResult.parse(JSON.parse(text)).results.map(({ id }) => id) : text,
      };
    };
    expect(await found("user_id=ada")).toEqual({ status: 200, ids: [secret?.id, other?.id] });
    expect(await found("user_id=ada&agent_id=planner")).toEqual({ status: 200, ids: [told?.id] });
    expect(await found("user_id=ada&query=bicycle&top_k=1")).toEqual({ status: 200, ids: [other?.id] });
    expect(await found("user_id=eve")).toEqual({ status: 200, ids: [] });
    expect(await found("query=bicycle")).toMatchObject({ status: 422, ids: expect.stringContaining("user_id") });
    expect(await found("user_id=ada&top_k=0")).toMatchObject({ status: 422, ids: expect.stringContaining("top_k") });
  });

  it("stores an exchange at once, as Mem0 has no model inside", async () => {
    const messages = [
      { role: "user", content: "I booked the night train." },
      { role: "assistant", content: "Then you arrive at eight." },
    ];
    const exchange = await app.send("POST", "/memories", { user_id: "ada", conversation_id: "trip", messages });
    const { results, waiting } = addResult.parse(JSON.parse(exchange.text));
    expect([exchange.status, results.length, waiting]).toEqual([201, 1, 0]);
    const found = await app.send("GET", "/memories?user_id=ada");
    expect(found.text).toContain("I booked the night train.");
  });

  it("takes texts as memories: the same text is the same memory, whatever its position", async () => {
    const first = await app.compose({
      user_id: "cy",
      query: "Tea?",
      annotations: false,
      memories: ["Cy naps.", "Cy likes tea."],
    });
    const second = await app.compose({
      user_id: "cy",
      query: "Tea?",
      annotations: false,
      memories: ["Cy likes tea.", "Cy naps."],
    });
    expect(first.messages[0]?.["content"]).toContain("- Cy naps.\n- Cy likes tea.");
    expect(second.messages).toEqual(first.messages);
    expect(second.warnings).toEqual([]);
  });
});
