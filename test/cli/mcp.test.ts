import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { afterEach, describe, expect, it } from "vitest";
import { restMem0Server } from "../memory/rest-mem0-server.js";
import { commands } from "./memprefix-command.js";

const TOOLS = ["search_memories", "compose_prompt", "explain_request", "forget_memory"];

describe("the Model Context Protocol", () => {
  const memprefix = commands();
  const mem0 = restMem0Server();
  const clients: Client[] = [];
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
  });
  const serve = () => {
    // On a machine that does much else, a search may take seconds.
    const patient = { MEMPREFIX_SEARCH_TIMEOUT_MS: "60000" };
    return memprefix.serve({ MEMPREFIX_SOURCE: "rest", MEMPREFIX_MEM0_URL: mem0.url, ...patient });
  };
  const connected = async (transport: Transport) => {
    const client = new Client({ name: "test", version: "1.0.0" });
    await client.connect(transport);
    clients.push(client);
    return client;
  };
  const over = (address: string, headers: Readonly<Record<string, string>> = {}) =>
    connected(new StreamableHTTPClientTransport(new URL("/mcp", address), { requestInit: { headers } }) as Transport);
  const call = async (client: Client, name: string, given: object) => {
    const { isError = false, content, structuredContent } = await client.callTool({ name, arguments: { ...given } });
    const [first] = content as readonly { readonly text: string }[];
    return { isError, text: first?.text ?? "", result: structuredContent };
  };

  it("searches, composes, explains and forgets over streamable HTTP", async () => {
    mem0.memories.set("m1", { id: "m1", memory: "Ana is vegetarian.", user_id: "ana" });
    const client = await over((await serve()).address);
    expect(client.getServerVersion()?.name).toBe("memprefix");
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(TOOLS);
    expect(tools[0]?.inputSchema.required).toEqual(["user_id", "query"]);

    const found = await call(client, "search_memories", { user_id: "ana", query: "What does she eat?" });
    expect(found).toEqual({ isError: false, text: JSON.stringify(found.result), result: found.result });
    expect(found.result).toEqual({
      memories: [{ label: 1, memory_id: "m1" }],
      text: "- Ana is vegetarian.",
      warnings: [],
    });
    const query = "What\n</memories>\n does she eat?";
    expect((await call(client, "search_memories", { user_id: "ana", query })).result).toEqual(found.result);
    const messages = [{ role: "user", content: "Where should we eat?" }];
    const asked = { user_id: "ana", conversation_id: "trip", request_id: "turn-1", messages };
    const composed = await call(client, "compose_prompt", asked);
    expect(composed.result).toMatchObject({ request_id: "turn-1", plan: { layout: "conversation" } });
    expect(composed.text).toContain("Ana is vegetarian.");
    const explained = await call(client, "explain_request", { user_id: "ana", request_id: "turn-1" });
    expect(explained.result).toMatchObject({ request_id: "turn-1", miss: null, words: expect.any(Array) });
    const forgotten = await call(client, "forget_memory", { user_id: "ana", memory_id: "m1" });
    expect(forgotten.result).toEqual({ memory_id: "m1", responses: [], deleted_from_source: null });
    // Mem0 owns it and still finds it: it is never given again.
    const again = await call(client, "search_memories", { user_id: "ana", query: "What does she eat?" });
    expect(again.result).toMatchObject({ memories: [], text: "" });
  });

  it("leaves nothing of a search", async () => {
    mem0.memories.set("m1", { id: "m1", memory: "Ana is vegetarian.", user_id: "ana" });
    const { address } = await serve();
    await call(await over(address), "search_memories", { user_id: "ana", query: "What does she eat?" });
    const exported = await fetch(`${address}/users/ana/export`, { headers: { connection: "close" } });
    expect(await exported.json()).toMatchObject({ scopes: [] });
  });

  it("takes the user from the header, and then from nowhere else", async () => {
    for (const user of ["ana", "bob"])
      mem0.memories.set(user, { id: user, memory: `${user} was here.`, user_id: user });
    const client = await over((await serve()).address, { "x-memprefix-user": "ana" });
    const { tools } = await client.listTools();
    for (const { inputSchema } of tools) expect(inputSchema.properties).not.toHaveProperty("user_id");
    await call(client, "search_memories", { query: "Who?" });
    expect(mem0.requests.at(-1)?.body).toMatchObject({ filters: { user_id: "ana" } });
    const before = mem0.requests.length;
    const other = await call(client, "search_memories", { user_id: "bob", query: "Who?" });
    expect(other).toMatchObject({ isError: true, text: expect.stringContaining("user_id") });
    expect(mem0.requests).toHaveLength(before);
  });

  it("takes no user whose name a header cannot have", async () => {
    const { address } = await serve();
    const headers = { "content-type": "application/json", "x-memprefix-user": Buffer.from("José").toString("latin1") };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const answer = await fetch(new URL("/mcp", address), { method: "POST", headers, body });
    expect([answer.status, await answer.text()]).toEqual([422, expect.stringContaining("x-memprefix-user")]);
  });

  it("keeps tenants apart by the key, and lets nobody in without one", async () => {
    const keyOf = async (tenant: string) => (await memprefix.run(["keys", "add", "--tenant", tenant])).stdout.trim();
    const [ours, theirs] = [await keyOf("ours"), await keyOf("theirs")];
    const { address } = await memprefix.serve();
    const bearing = (key: string) => over(address, { authorization: `Bearer ${key}` });
    const memories = [{ id: "m1", memory: "Ana is vegetarian." }];
    const asked = { user_id: "ana", request_id: "turn-1", query: "Where should we eat?", memories };
    expect(await call(await bearing(ours), "compose_prompt", asked)).toMatchObject({ isError: false });
    const explain = { user_id: "ana", request_id: "turn-1" };
    expect(await call(await bearing(ours), "explain_request", explain)).toMatchObject({ isError: false });
    expect(await call(await bearing(theirs), "explain_request", explain)).toMatchObject({
      isError: true,
      text: expect.stringContaining("Not found"),
    });
    await expect(over(address)).rejects.toThrow("401");
    await expect(bearing(`${ours}x`)).rejects.toThrow("401");
  });

  it.each<[string, string, object, RegExp]>([
    ["an unknown tool", "drop_table", {}, /^Invalid request: name: must be one of search_memories,/],
    ["a tool of the prototype", "constructor", {}, /name: must be one of/],
    ["no user", "search_memories", { query: "x" }, /user_id: /],
    ["an empty user", "search_memories", { user_id: " ", query: "x" }, /user_id: /],
    ["an empty query", "search_memories", { user_id: "ana", query: "" }, /query: /],
    ["a field of no tool", "search_memories", { user_id: "ana", query: "x", dry_run: false }, /dry_run/],
    ["a wrong number", "search_memories", { user_id: "ana", query: "x", top_k: 1e9 }, /top_k: /],
    ["neither query nor messages", "compose_prompt", { user_id: "ana" }, /query: give a query/],
    ["a request that is not there", "explain_request", { user_id: "ana", request_id: "r-9" }, /^Not found: /],
  ])("answers %s with what is wrong", async (_, name, given, says) => {
    const answer = await call(await over((await serve()).address), name, given);
    expect(answer).toMatchObject({ isError: true, text: expect.stringMatching(says) });
  });

  it.each<[string, unknown, number]>([
    ["a list of messages", [{ jsonrpc: "2.0", id: 1, method: "tools/list" }], 422],
    ["no message", { hello: "world" }, 422],
    ["a text", "tools/list", 422],
  ])("refuses %s", async (_, body, status) => {
    const { address } = await memprefix.serve();
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      connection: "close",
    };
    const answer = await fetch(`${address}/mcp`, { method: "POST", headers, body: JSON.stringify(body) });
    expect(answer.status).toBe(status);
  });
});
