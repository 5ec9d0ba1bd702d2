import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { addResult } from "../../../src/http/contracts/user-contract.js";
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

  it("forgets what an agent was told, though that agent never composed", async () => {
    const [told] = await add({ agent_id: "planner" }, SECRET);
    await add({}, OTHER);
    expect((await ask()).blocks).toHaveLength(1);
    const forgotten = await app.send("DELETE", `/users/ada/memories/${told?.id}`);
    expect(JSON.parse(forgotten.text)).toMatchObject({ deleted_from_source: true });
    expect(filesHolding(SECRET)).toEqual([]);
    expect((await ask({ agent_id: "planner" })).blocks).toEqual([]);
  });

  it("forgets a user with all agents, and leaves others", async () => {
    await add({}, SECRET);
    await add({ agent_id: "planner" }, `${SECRET}, says the planner`);
    await app.send("POST", "/memories", { user_id: "bob", memories: [OTHER] });
    await ask();
    expect(JSON.parse((await app.send("DELETE", "/users/ada")).text)).toEqual({ user_id: "ada", scopes: 1 });
    expect(filesHolding(SECRET)).toEqual([]);
    expect((await ask()).blocks).toEqual([]);
    expect((await ask({ user_id: "bob" })).blocks).toHaveLength(1);
  });
});
