import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { CachingEngine } from "../../../src/core/index.js";
import { openUpstream } from "../../../src/engines/upstream/upstream.js";
import { startCacheReadings } from "../../../src/service/learning/cache-readings.js";

const VLLM = (tokens: number) =>
  `vllm:cache_config_info{block_size="128",kv_cache_size_tokens="${tokens}"} 1.0\nvllm:prefix_cache_queries_total 0\nvllm:prefix_cache_hits_total 0\n`;

describe("readings of an engine's cache", () => {
  let server: Server;
  let stop = () => {};
  const asked: string[] = [];

  /** Reads an engine that answers so. */
  async function reading(answer: (response: ServerResponse, count: number) => void) {
    asked.length = 0;
    server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
      answer(response, asked.length);
    }).listen(0, "127.0.0.1");
    await new Promise((listening) => server.once("listening", listening));
    const { port } = server.address() as AddressInfo;
    const upstream = openUpstream({ url: `http://127.0.0.1:${port}/v1`, apiKey: "secret", timeoutMs: 5_000 });
    const cache = new CachingEngine();
    stop = startCacheReadings({ cache, upstream, now: () => asked.length, intervalMs: 5 });
    return cache;
  }

  afterEach(async () => {
    stop();
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  });

  it("come from /metrics beside the API, at once and while prompts are composed", async () => {
    const cache = await reading((response, count) => response.end(VLLM(8_960 * count)));
    await vi.waitFor(() => expect(cache.capacityTokens).toBe(8_960));
    expect(cache.blockTokens).toBe(128);
    expect(asked).toEqual(["GET /metrics Bearer secret"]);
    cache.sends({ at: 0, computed: 100, cached: 0 });
    await vi.waitFor(() => expect(cache.capacityTokens).toBe(2 * 8_960));
    expect(asked).toHaveLength(2);
  });

  it("are not asked for again where there is no such route", async () => {
    const cache = await reading((response) => {
      response.statusCode = 404;
      response.end("404 page not found");
    });
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    cache.sends({ at: 0, computed: 100, cached: 0 });
    await new Promise((later) => setTimeout(later, 50));
    expect(asked).toHaveLength(1);
    expect(cache.capacityTokens).toBeNull();
  });

  it.each([
    ["an error", (response: ServerResponse) => response.writeHead(500).end(VLLM(5))],
    ["a page", (response: ServerResponse) => response.end("<html>")],
    ["more than can be read", (response: ServerResponse) => response.end(VLLM(5) + "#".repeat(9 * 1024 * 1024))],
    ["a part", (response: ServerResponse) => response.writeHead(200, { "content-length": 1e6 }).write(VLLM(5))],
    ["nothing", () => {}],
  ])("leave everything unknown where they are %s", async (_, answer) => {
    const cache = await reading((response) => void answer(response));
    await vi.waitFor(() => expect(asked.length).toBeGreaterThan(0));
    await new Promise((later) => setTimeout(later, 50));
    expect([cache.capacityTokens, cache.blockTokens, cache.foreignTokens]).toEqual([null, null, 0]);
  });
});
