import type { IncomingMessage } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import type { MemoryId } from "../../src/core/text/ids.js";
import { openHostedMem0 } from "../../src/memory/hosted-mem0.js";
import { openRestMem0 } from "../../src/memory/rest-mem0.js";
import { standIn } from "../stand-in.js";
import { json, startPlatformServer, startRestServer } from "./mem0-wire-server.js";
import { scopeOf } from "./memory-source.suite.js";

const KEY = "m0-very-secret";
const never = new AbortController().signal;

describe("settings", () => {
  const wrong = [
    { url: "mem0:8000" },
    { url: "ftp://mem0" },
    { url: "not a url" },
    { url: `http://user:${KEY}@mem0` },
    { url: `http://mem0?key=${KEY}` },
    { url: "http://mem0", apiKey: `${KEY}\n` },
    { url: "http://mem0", apiKey: "" },
  ];

  it.each(wrong)("are refused at once, unquoted, where they cannot work: %#", (settings) => {
    for (const open of [() => openRestMem0(settings), () => openHostedMem0({ apiKey: KEY, ...settings })]) {
      expect(open).toThrow(TypeError);
      expect(open).not.toThrow(KEY);
    }
  });
});

describe("on the wire", () => {
  const odd = scopeOf("Ada Lovelace", "bot 7/ä");

  it("the REST source sends what Mem0's REST server takes", async () => {
    const server = await startRestServer(KEY);
    onTestFinished(server.close);
    const source = openRestMem0({ url: `${server.url}/`, apiKey: KEY });
    const [added] = await source.add(odd, [{ text: "she drinks tea", metadata: { camelKey: 1 } }], never);
    await source.search({ scope: odd, query: "tea", topK: 7, options: { threshold: 0.2 } }, never);
    await source.delete(odd, added?.id ?? ("" as MemoryId), never);
    await source.deleteUser(odd, never);
    const names = { user_id: "Ada Lovelace", agent_id: "bot 7/ä" };
    expect(server.requests.map(({ method, path, body }) => [`${method} ${path}`, body])).toEqual([
      [
        "POST /memories",
        { messages: [{ role: "user", content: "she drinks tea" }], ...names, infer: false, metadata: { camelKey: 1 } },
      ],
      ["POST /search", { query: "tea", filters: names, top_k: 7, threshold: 0.2 }],
      [`GET /memories/${added?.id}`, undefined],
      [`DELETE /memories/${added?.id}`, undefined],
      ["DELETE /memories?user_id=Ada+Lovelace", undefined],
    ]);
    expect(server.requests.every(({ headers }) => headers["x-api-key"] === KEY)).toBe(true);
  });

  it("the REST source sends no key and no threshold where there is none", async () => {
    const headers: IncomingMessage["headers"][] = [];
    const url = await standIn((request, response) => {
      headers.push(request.headers);
      json({ results: [] })(request, response);
    });
    const query = { scope: scopeOf("ada"), query: "what does Ada drink?", topK: 5 };
    expect(await openRestMem0({ url }).search(query, never)).toEqual([]);
    expect(headers).toHaveLength(1);
    expect(headers[0]).not.toHaveProperty("x-api-key");
    expect(headers[0]).not.toHaveProperty("authorization");
  });

  it("the hosted source sends what Mem0's client sends", async () => {
    const server = await startPlatformServer(KEY);
    onTestFinished(server.close);
    const source = openHostedMem0({ url: server.url, apiKey: KEY });
    expect(await source.add(odd, [{ text: "she drinks tea", metadata: { camelKey: 1 } }], never)).toEqual([]);
    const [found] = await source.search({ scope: odd, query: "tea", topK: 7, options: { threshold: 0.2 } }, never);
    const options = { filters: { topic: "food" }, showExpired: true, rerank: true, referenceDate: "2026-11-26" };
    await source.search({ scope: odd, query: "tea", topK: 7, options }, never).catch(() => []);
    const narrowed = server.requests[2];
    await source.delete(odd, found?.id ?? ("" as MemoryId), never);
    await source.deleteUser(odd, never);
    const names = { user_id: "Ada Lovelace", agent_id: "bot 7/ä" };
    expect(narrowed?.body).toMatchObject({
      filters: {
        AND: [{ user_id: names.user_id }, { agent_id: names.agent_id }, { topic: "food" }],
      },
      show_expired: true,
      rerank: true,
      reference_date: "2026-11-26",
    });
    const others = server.requests.filter((request) => request !== narrowed);
    expect(others.map(({ method, path, body }) => [`${method} ${path}`, body])).toEqual([
      [
        "POST /v3/memories/add/",
        { messages: [{ role: "user", content: "she drinks tea" }], ...names, infer: false, metadata: { camelKey: 1 } },
      ],
      [
        "POST /v3/memories/search/",
        { query: "tea", output_format: "v1.1", filters: names, latest_only: true, top_k: 7, threshold: 0.2 },
      ],
      [`GET /v1/memories/${found?.id}/`, undefined],
      [`DELETE /v1/memories/${found?.id}/`, undefined],
      ["DELETE /v2/entities/user/Ada%20Lovelace/", undefined],
    ]);
    expect(server.requests.every(({ headers }) => headers.authorization === `Token ${KEY}`)).toBe(true);
  });
});
