import { mkdirSync, writeFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import Database from "better-sqlite3";
import { afterEach, describe, expect, it } from "vitest";
import { type AgentEngine, agentEngine, type EngineReports } from "../clients/agent-engine.js";
import { restMem0Server } from "../memory/rest-mem0-server.js";
import { standIn } from "../stand-in.js";
import { commands } from "./memprefix-command.js";

describe("memprefix doctor", () => {
  const memprefix = commands();
  const mem0 = restMem0Server();
  const engines: AgentEngine[] = [];
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.close();
  });
  const started = async (reports?: EngineReports) => {
    const engine = await agentEngine(reports);
    engines.push(engine);
    return engine;
  };
  /** Anything else that answers under the engine's address. */
  const answering = async (listener: RequestListener) => `${await standIn(listener)}/v1`;
  /** With the states of what was looked at. Nothing listens at port 1. */
  const doctor = async (environment: Readonly<Record<string, string>>, ...more: readonly string[]) => {
    const settings = { MEMPREFIX_SOURCE: "none", MEMPREFIX_PORT: "1", ...environment };
    const ended = await memprefix.run(["doctor", ...more], { environment: settings });
    const states = [...ended.stdout.matchAll(/^(\w+) +(ok|change|broken|unknown) /gm)];
    return { ...ended, states: Object.fromEntries(states.map(([, part, state]) => [part, state])) };
  };

  it("finds everything in order where Mem0, an engine that reports, and a service with named conversations are there", async () => {
    const engine = await started();
    mem0.memories.set("m1", { id: "m1", memory: "Ana is vegetarian.", user_id: "ana" });
    const parts = { MEMPREFIX_SOURCE: "rest", MEMPREFIX_MEM0_URL: mem0.url, MEMPREFIX_UPSTREAM_URL: engine.url };
    const { address } = await memprefix.serve(parts);
    const headers = {
      "content-type": "application/json",
      "x-memprefix-user": "ana",
      "x-memprefix-conversation": "trip",
    };
    const body = JSON.stringify({ model: "stub-1", messages: [{ role: "user", content: "Hello" }] });
    expect((await fetch(`${address}/v1/chat/completions`, { method: "POST", headers, body })).status).toBe(200);
    const served = engine.served.length;

    const looked = await doctor({ ...parts, MEMPREFIX_PORT: new URL(address).port }, "--user", "ana");
    expect(looked).toMatchObject({ code: 0, stderr: "" });
    expect(looked.states).toEqual({
      store: "ok",
      memories: "ok",
      engine: "ok",
      cache: "ok",
      apis: "ok",
      service: "ok",
      identity: "ok",
    });
    expect(looked.stdout).toContain("mem0-rest found 1 for ana in ");
    expect(looked.stdout).toContain("of the last 1 prompts 1 name a conversation; users: 1");
    expect(looked.stdout).toMatch(/\nNothing to change\.\n$/);
    const probes = engine.served.slice(served).map(({ counted }) => counted);
    expect(probes).toHaveLength(3);
    expect(probes[0]?.cached).toBeLessThan(20);
    expect(probes[1]?.cached).toBeGreaterThan((probes[1]?.prompt ?? 0) - 2);
    expect(looked.stdout).toContain(
      `${probes[1]?.cached} of ${probes[1]?.prompt} tokens hit the second time, ${probes[2]?.cached} with`,
    );
  });

  it("counts chats that name no user, which the log tells of once", async () => {
    const { url } = await started();
    const service = await memprefix.serve({ MEMPREFIX_UPSTREAM_URL: url });
    const body = JSON.stringify({ model: "stub-1", messages: [{ role: "user", content: "Hello" }] });
    const headers = { "content-type": "application/json" };
    for (let at = 0; at < 3; at++) {
      const answer = await fetch(`${service.address}/v1/chat/completions`, { method: "POST", headers, body });
      expect([answer.status, answer.headers.get("x-memprefix-not-composed")]).toEqual([200, "no_user"]);
    }
    const looked = await doctor({ MEMPREFIX_UPSTREAM_URL: url, MEMPREFIX_PORT: new URL(service.address).port });
    expect(looked.states["identity"]).toBe("change");
    expect(looked.stdout).toContain("3 chats named no user, and went to the engine without memories");
    service.kill("SIGTERM");
    const { stdout, stderr } = await service.ended;
    expect(`${stdout}${stderr}`.match(/a chat names no user/g)).toHaveLength(1);
  });

  it("names the APIs that the engine lacks", async () => {
    const { url } = await started();
    const upstream = await answering((request, response) => {
      if (request.url?.startsWith("/v1/responses") || request.url?.startsWith("/v1/messages"))
        return response.writeHead(404).end();
      const body = Readable.toWeb(request) as ReadableStream<Uint8Array>;
      const { method = "GET" } = request;
      const sent =
        method === "GET" ? {} : { body, duplex: "half" as const, headers: { "content-type": "application/json" } };
      return fetch(new URL(request.url ?? "", url), { method, ...sent }).then(async (answer) =>
        response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text()),
      );
    });
    const { states, stdout } = await doctor({ MEMPREFIX_UPSTREAM_URL: upstream });
    expect(states).toMatchObject({ engine: "ok", apis: "ok" });
    expect(stdout).toContain(
      "it lacks /v1/messages and /v1/responses: use an API that it has, or LiteLLM in front of it",
    );
  });

  it("works without anything, and says what is not there", async () => {
    const { code, stdout, states } = await doctor({});
    expect(code).toBe(0);
    expect(states).toEqual({ store: "ok", memories: "unknown", engine: "unknown", service: "unknown" });
    expect(stdout).toContain("none runs at http://127.0.0.1:1: memprefix serve starts it");
    expect(memprefix.leftBehind).toEqual([]);
  });

  it("loads everything stored, also while a service runs, and names the users of which something is damaged", async () => {
    const { address } = await memprefix.serve();
    const headers = { "content-type": "application/json" };
    for (const user_id of ["ana", "bo"]) {
      const body = JSON.stringify({ user_id, query: "Tea?", memories: [{ id: "m1", memory: "Green tea." }] });
      expect((await fetch(`${address}/compose`, { method: "POST", headers, body })).status).toBe(200);
    }
    expect((await doctor({})).stdout).toMatch(/^store +ok +2 requests of 2 users load$/m);
    const sqlite = new Database(join(memprefix.dataDir, "memprefix.db"));
    const bo = "select id from scopes where user_id = 'bo'";
    sqlite.exec(`update changes set changes = replace(changes, '}', ']') where scope_id = (${bo})`);
    sqlite.close();
    const { code, stdout } = await doctor({});
    expect(code).toBe(1);
    expect(stdout).toContain('store     broken   user "default" "bo": a scope\'s changes is not what was written\n');
    expect(stdout).not.toContain('"ana"');
    expect(stdout).not.toMatch(/Tea|Green/);
  });

  it("names a database file that SQLite cannot read", async () => {
    const service = await memprefix.serve();
    service.kill("SIGTERM");
    await service.ended;
    mkdirSync(join(memprefix.dataDir, "mem0"), { recursive: true });
    writeFileSync(join(memprefix.dataDir, "mem0", "vectors.db"), "This is no database. ".repeat(500));
    const { code, stdout, states } = await doctor({});
    expect({ code, store: states["store"] }).toEqual({ code: 1, store: "broken" });
    expect(stdout).toContain("vectors.db: it is not a database");
    expect(stdout).toContain("1. restore the database from a backup");
  });

  it.each(["null_details", "none"] as const)(
    "does not take an engine that reports nothing (%s) for one that caches nothing",
    async (reports) => {
      const { url } = await started(reports);
      const { code, stdout, states } = await doctor({ MEMPREFIX_UPSTREAM_URL: url });
      expect(code).toBe(0);
      expect(states).toMatchObject({ engine: "ok", cache: "unknown" });
      expect(stdout).toContain("1. let the engine report cached tokens: vLLM --enable-prompt-tokens-details");
    },
  );

  it("names an engine's family, and orders what to change by what it gains", async () => {
    const url = await answering((request, response) => {
      const usage = { prompt_tokens: 1_600, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 0 } };
      const models = { data: [{ id: "qwen", owned_by: "vllm", max_model_len: 40_960 }] };
      const message = { role: "assistant", content: "yes" };
      const chat = { choices: [{ index: 0, message, finish_reason: "stop" }], usage };
      return response.end(JSON.stringify(request.method === "GET" ? models : chat));
    });
    const { code, stdout, states } = await doctor({ MEMPREFIX_UPSTREAM_URL: url });
    expect(code).toBe(1);
    expect(states).toMatchObject({ engine: "ok", cache: "broken" });
    expect(stdout).toMatch(/^engine +ok .+; family vllm$/m);
    expect(stdout).toMatch(/\n1\. turn the engine's prefix cache on: /);
  });

  it("says of a service whose prompts name no conversation what to do first", async () => {
    const { address } = await memprefix.serve();
    const body = JSON.stringify({ user_id: "ana", query: "Hello", memories: [] });
    await fetch(`${address}/compose`, { method: "POST", headers: { "content-type": "application/json" }, body });
    const { code, stdout, states } = await doctor({ MEMPREFIX_PORT: new URL(address).port });
    expect(code).toBe(0);
    expect(states).toMatchObject({ service: "ok", identity: "change" });
    expect(stdout).toContain("of the last 1 prompts 0 name a conversation; users: 1");
    expect(stdout).toMatch(/\n1\. name conversations/);
  });

  it("asks for the key of a service that wants one", async () => {
    const { stdout } = await memprefix.run(["keys", "add"]);
    const { address } = await memprefix.serve();
    const environment = { MEMPREFIX_PORT: new URL(address).port };
    const without = await doctor(environment);
    expect(without.states).toMatchObject({ service: "ok", identity: "unknown" });
    expect(without.stdout).toContain("MEMPREFIX_API_KEY");
    const { states } = await doctor({ ...environment, MEMPREFIX_API_KEY: stdout.trim() });
    expect(states).toMatchObject({ service: "ok", identity: "unknown" });
  });

  it.each([
    [
      "Mem0 is down",
      { MEMPREFIX_SOURCE: "rest", MEMPREFIX_MEM0_URL: "http://127.0.0.1:1" },
      "memories",
      /could not be reached/,
      /start Mem0/,
    ],
    [
      "the engine is down",
      { MEMPREFIX_UPSTREAM_URL: "http://127.0.0.1:1/v1" },
      "engine",
      /could not be reached/,
      /start the engine/,
    ],
  ])("ends with 1 where %s, and says it in a sentence", async (_, environment, part, says, advice) => {
    const { code, stdout, stderr, states } = await doctor(environment);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(states[part]).toBe("broken");
    expect(stdout).toMatch(says);
    expect(stdout).toMatch(new RegExp(`most valuable first:\n1\\. ${advice.source}`));
    const asJson = await doctor(environment, "--json");
    expect([asJson.code, JSON.parse(asJson.stdout)[0]]).toEqual([
      1,
      { part, state: "broken", says: expect.stringMatching(says), advice: expect.stringMatching(advice) },
    ]);
  });

  it("passes on what Mem0 or the engine refused, as plain text", async () => {
    const url = await answering((_, response) => {
      const error = { message: "wrong key\u001b[31m\nfor this model", type: "auth" };
      response.writeHead(401).end(JSON.stringify({ error }));
    });
    const environment = { MEMPREFIX_UPSTREAM_URL: url, MEMPREFIX_SOURCE: "rest", MEMPREFIX_MEM0_URL: mem0.url };
    mem0.isDown = true;
    const { code, stdout, states } = await doctor(environment);
    expect(code).toBe(1);
    expect(states).toMatchObject({ engine: "broken", memories: "broken" });
    expect(stdout).toContain("it answered with status 401: wrong key [31m for this model\n");
    expect(stdout).toContain("1. give its key as MEMPREFIX_UPSTREAM_API_KEY\n2. make Mem0 answer");
    expect(stdout).toContain('memory source "mem0-rest" answered with status 500');
  });

  it("advises more time, not another address, where Mem0 answers too late", async () => {
    const url = await standIn(() => {});
    const parts = { MEMPREFIX_SOURCE: "rest", MEMPREFIX_MEM0_URL: url, MEMPREFIX_SEARCH_TIMEOUT_MS: "50" };
    const { code, stdout, states } = await doctor(parts);
    expect([code, states["memories"]]).toEqual([1, "broken"]);
    expect(stdout).toContain("did not answer within 50 ms");
    expect(stdout).toMatch(/1\. try again .*MEMPREFIX_SEARCH_TIMEOUT_MS/);
  });

  it("asks which of several models to try, and does not take another program for memprefix", async () => {
    const url = await answering((_, response) => {
      response.end(JSON.stringify({ data: [{ id: "a" }, { id: "b" }] }));
    });
    const { code, stdout, states } = await doctor({ MEMPREFIX_UPSTREAM_URL: url, MEMPREFIX_PORT: new URL(url).port });
    expect(code).toBe(1);
    expect(states).toMatchObject({ engine: "broken", service: "broken" });
    expect(stdout).toContain("it lists 2 models");
    expect(stdout).toContain("1. name one: --model NAME\n");
  });
});
