import { EventEmitter } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { run } from "../../src/cli/command-line.js";
import { composeResult } from "../../src/http/contracts/compose-contract.js";
import { standIn } from "../stand-in.js";
import { commands, type Ended } from "./memprefix-command.js";
import type { Listening } from "./own-directories.js";

const SECRET = "Ada hides the key under the third flower pot";

function post(service: Listening<Ended>, path: string, body: unknown): Promise<Response> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return fetch(service.address + path, { method: "POST", body: text, headers: { "content-type": "application/json" } });
}

describe("memprefix serve", () => {
  const memprefix = commands();

  it("listens on the loopback, keeps its files in the data directory and nothing elsewhere", async () => {
    const service = await memprefix.serve();
    expect(service.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await (await fetch(`${service.address}/healthz`)).json()).toEqual({
      status: "ok",
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      source: null,
    });
    expect(readdirSync(memprefix.dataDir).every((name) => /^(memprefix|owner)\.(db|json)/.test(name))).toBe(true);
    expect(memprefix.leftBehind).toEqual([]);
  });

  it.each<[string, Record<string, string>, readonly string[]]>([
    [
      "without an engine",
      {},
      [
        "upstream    none, so only /compose is served: .+",
        "family      generic",
        "cost model  a GPU's times, until measured",
      ],
    ],
    [
      "with OpenAI's address",
      { MEMPREFIX_UPSTREAM_URL: "https://u:secret@api.openai.com/v1" },
      ["upstream    https://api.openai.com/v1", "family      openai \\(by its host\\)", "cost model  OpenAI's prices"],
    ],
    [
      "with an engine that cannot be reached, and its cost",
      { MEMPREFIX_UPSTREAM_URL: "http://127.0.0.1:1/v1", MEMPREFIX_ENGINE_COST: "cpu" },
      [
        "upstream    http://127.0.0.1:1/v1",
        "family      generic \\(the engine names no other\\)",
        "cost model  as configured",
      ],
    ],
  ])("says what it works with: %s", async (_how, environment, lines) => {
    const service = await memprefix.serve({ MEMPREFIX_KV_EVENTS: "off", ...environment });
    const memories = "memories    none, so requests bring them";
    const message = [...lines, memories, `dashboard   ${service.address}/dashboard`].join("\n");
    expect(await service.printed(new RegExp(`(${message})\n`))).not.toContain("secret");
  });

  it("takes no default user together with API keys, configured or stored", async () => {
    const environment = { MEMPREFIX_DEFAULT_USER: "ana" };
    const refused = { code: 2, stderr: expect.stringContaining("MEMPREFIX_DEFAULT_USER: conflicts with API keys") };
    expect(
      await memprefix.run(["serve"], { environment: { ...environment, MEMPREFIX_API_KEY: "k".repeat(32) } }),
    ).toMatchObject(refused);
    await memprefix.run(["keys", "add"]);
    expect(await memprefix.run(["serve"], { environment })).toMatchObject(refused);
  });

  it("gives no default user to who has a key, of which the first was made meanwhile", async () => {
    const bodies: string[] = [];
    const url = await standIn(async (incoming, response) => {
      if (incoming.method === "POST") bodies.push(Buffer.concat(await incoming.toArray()).toString());
      return response.writeHead(200, { "content-type": "application/json" }).end('{"data":[],"choices":[]}');
    });
    const service = await memprefix.serve({ MEMPREFIX_DEFAULT_USER: "ana", MEMPREFIX_UPSTREAM_URL: `${url}/v1` });
    const memories = [{ id: "m1", memory: "Ana likes tea." }];
    const chat = { messages: [{ role: "user", content: "Tea?" }], memprefix: { memories } };
    expect((await post(service, "/v1/chat/completions", chat)).status).toBe(200);
    expect(bodies.at(-1)).toContain("Ana likes tea.");
    const { stdout } = await memprefix.run(["keys", "add"]);
    const headers = { "content-type": "application/json", "x-api-key": stdout.trim() };
    await fetch(`${service.address}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(chat) });
    expect(bodies.slice(1).join()).not.toContain("Ana likes tea.");
  });

  it("recognises its engine by what it says, and sends it that family's fields", async () => {
    const bodies: unknown[] = [];
    const url = await standIn(async (incoming, response) => {
      if (incoming.method === "GET") return response.end(JSON.stringify({ data: [{ id: "qwen", owned_by: "vllm" }] }));
      bodies.push(JSON.parse(Buffer.concat(await incoming.toArray()).toString()));
      return response.writeHead(200, { "content-type": "application/json" }).end('{"choices":[]}');
    });
    const service = await memprefix.serve({ MEMPREFIX_UPSTREAM_URL: `${url}/v1` });
    await service.printed(/family {6}(vllm \(as the engine says\))\n/);
    const chat = { model: "qwen", user: "ana", messages: [{ role: "user", content: "Tea?" }] };
    expect((await post(service, "/v1/chat/completions", chat)).status).toBe(200);
    expect(bodies).toMatchObject([{ cache_salt: expect.any(String), request_id: expect.any(String) }]);
  });

  it("stops at a signal that comes while it says that it listens", async () => {
    const signals = new EventEmitter();
    const heard: boolean[] = [];
    const stdout = new Writable({
      write(line, _encoding, done) {
        if (String(line).includes("listens on")) heard.push(signals.emit("SIGTERM"));
        done();
      },
    });
    const env = {
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_PORT: "0",
      MEMPREFIX_DATA_DIR: join(memprefix.root, "signalled"),
    };
    const code = await new Promise<number>((exit) => {
      void run(["serve"], env, { stdout, stderr: new PassThrough(), signals, exit });
    });
    expect({ heard, code }).toEqual({ heard: [true], code: 0 });
  });

  it("searches embedded Mem0 unless told otherwise", async () => {
    const service = await memprefix.serve({ MEMPREFIX_SOURCE: "" });
    expect(await (await fetch(`${service.address}/healthz`)).json()).toMatchObject({ source: "embedded" });
    expect((await post(service, "/memories", { user_id: "ada", memories: [SECRET] })).status).toBe(201);
    const answer = await post(service, "/compose", { user_id: "ada", query: "Where does Ada hide the key?" });
    expect(composeResult.parse(await answer.json()).messages[0]?.["content"]).toContain(SECRET);
    expect(memprefix.leftBehind).toEqual([]);
  });
});
