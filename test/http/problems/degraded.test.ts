import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { Writable } from "node:stream";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type RunningService, startService } from "../../../src/cli/serve.js";
import { readSettings } from "../../../src/cli/settings.js";
import { standIn } from "../../stand-in.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { sendWith } from "../guards/callers.js";

const KEY = "m0-the-key-of-this-service-0123456789";
const SPACES = "Invalid user_id: cannot contain whitespace. Provide an identifier without spaces.";

/** What Mem0's server answers to every request; null: nothing, the connection breaks off. */
type Answer = { readonly status: number; readonly body: unknown } | null;
const FOUND: Answer = { status: 200, body: { results: [{ id: "m-1", memory: "Ada drinks tea", user_id: "ada" }] } };

describe("a service whose parts fail", () => {
  let mem0 = "";
  let engine = "";
  let answer: Answer = FOUND;
  /** Null: the connection breaks off. */
  let engineStatus: number | null = 200;
  let breaksOff = false;
  const newFolder = temporaryFolders();
  let dataDir = "";
  let service: RunningService;
  const lines: Record<string, unknown>[] = [];
  const told = (...kinds: string[]) => lines.filter(({ msg }) => kinds.includes(String(msg)));
  const send = (method: string, path: string, body?: object) =>
    sendWith({ base: service.address }, {}, method, path, body);
  const health = async () => JSON.parse((await send("GET", "/healthz")).text) as Record<string, unknown>;
  const chat = (user: string) =>
    send("POST", "/v1/chat/completions", { model: "m", user, messages: [{ role: "user", content: "Which tea?" }] });

  beforeEach(async () => {
    answer = FOUND;
    engineStatus = 200;
    breaksOff = false;
    lines.length = 0;
    mem0 = await standIn(async (incoming, response) => {
      await incoming.toArray();
      if (answer === null) return response.destroy();
      return sendJson(response, answer.status, answer.body);
    });
    engine = await standIn(async (incoming, response) => {
      const asked = Buffer.concat(await incoming.toArray()).toString();
      if (asked.includes('"stream":true')) {
        const chunk = { choices: [{ index: 0, delta: { content: "Green." }, finish_reason: "stop" }] };
        response.writeHead(200, { "content-type": "text/event-stream" }).write(`data: ${JSON.stringify(chunk)}\n\n`);
        return breaksOff ? setTimeout(() => response.destroy(), 20) : response.end("data: [DONE]\n\n");
      }
      if (engineStatus === null) return response.destroy();
      const message = { role: "assistant", content: "Green." };
      return sendJson(response, engineStatus, { choices: [{ index: 0, message, finish_reason: "stop" }] });
    });
    dataDir = newFolder();
    await start({ MEMPREFIX_MEM0_API_KEY: KEY });
  });
  afterEach(() => service.stop());

  async function start(environment: Record<string, string>) {
    const settings = readSettings({
      MEMPREFIX_DATA_DIR: dataDir,
      MEMPREFIX_PORT: "0",
      MEMPREFIX_MEM0_URL: mem0,
      MEMPREFIX_UPSTREAM_URL: `${engine}/v1`,
      MEMPREFIX_LOG_LEVEL: "info",
      ...environment,
    });
    const stderr = new Writable({
      write(chunk: Buffer, _encoding, done) {
        for (const line of chunk.toString().trim().split("\n")) lines.push(JSON.parse(line) as Record<string, unknown>);
        done();
      },
    });
    service = await startService(settings, stderr, { shutdownMs: 100 });
  }

  it.each<[string, Answer, RegExp]>([
    ["breaks off", null, /could not be reached/],
    ["wants a key", { status: 401, body: { detail: "Invalid API key." } }, /status 401: Invalid API key\./],
    ["fails", { status: 500, body: { detail: "qdrant is away" } }, /status 500: qdrant is away/],
    ["is busy", { status: 429, body: { error: "Slow down" } }, /status 429: Slow down/],
    ["is no Mem0", { status: 200, body: "<html>" }, /unreadable answer/],
  ])("says once that Mem0 %s, and again when that changes or ends", async (_what, failing, cause) => {
    expect((await chat("ada")).headers.get("x-memprefix-source-failure")).toBeNull();
    expect(await health()).toMatchObject({ status: "ok" });
    expect(await health()).not.toHaveProperty("degraded");
    answer = failing;
    for (let n = 0; n < 3; n++) {
      const { status, headers } = await chat("ada");
      expect([status, headers.get("x-memprefix-warnings")]).toEqual([200, "memory_source_failed"]);
      expect(headers.get("x-memprefix-source-failure")).toMatch(cause);
    }
    expect(told("degraded")).toMatchObject([{ level: 40, part: "memory_search", cause: expect.stringMatching(cause) }]);
    expect(await health()).toMatchObject({
      status: "degraded",
      degraded: [{ part: "memory_search", reason: expect.any(String), since: expect.any(Number) }],
    });
    expect((await send("GET", "/livez")).text).toContain('"ok"');
    expect((await send("GET", "/metrics")).text).toContain('memprefix_degraded{part="memory_search"} 1');
    answer = { status: 503, body: { detail: "Another reason" } };
    await chat("ada");
    expect(told("degraded")).toHaveLength(2);
    answer = FOUND;
    await chat("ada");
    expect(told("recovered")).toMatchObject([{ part: "memory_search" }]);
    expect(await health()).toMatchObject({ status: "ok" });
    expect((await send("GET", "/metrics")).text).toContain('memprefix_degraded{part="memory_search"} 0');
    expect(told("fault")).toEqual([]);
  });

  it("tells nobody without a key what Mem0 said", async () => {
    answer = { status: 500, body: { detail: "no such user caroline" } };
    await chat("caroline");
    const shown = (await send("GET", "/healthz")).text;
    expect(shown).toContain("status 500");
    expect(shown).not.toContain("caroline");
  });

  it("passes Mem0's sentence on from every door, and stays ok: it refused this user's name alone", async () => {
    answer = { status: 400, body: { detail: SPACES } };
    const of = { user_id: "caroline smith" };
    const composed = await send("POST", "/compose", { ...of, request_id: "r-1", query: "Which tea?" });
    expect(JSON.parse(composed.text)).toMatchObject({
      warnings: [{ code: "memory_source_failed", message: expect.stringContaining(SPACES) }],
    });
    const batch = await send("POST", "/compose/batch", { requests: [{ ...of, query: "Which tea?" }] });
    expect(batch.text).toContain(SPACES);
    for (const [path, body] of [
      ["chat/completions", { messages: [{ role: "user", content: "Which tea?" }] }],
      ["responses", { input: "Which tea?" }],
      ["messages", { max_tokens: 9, messages: [{ role: "user", content: "Which tea?" }] }],
    ] as const) {
      const { status, headers } = await send("POST", `/v1/${path}`, { model: "m", ...body, memprefix: of });
      expect([path, status, headers.get("x-memprefix-source-failure")]).toEqual([
        path,
        200,
        expect.stringContaining(SPACES),
      ]);
    }
    const added = await send("POST", "/memories", { ...of, memories: ["Ada drinks tea"] });
    expect([added.status, added.text]).toEqual([502, expect.stringContaining(SPACES)]);
    const { text } = await send("GET", "/requests/r-1/explain?user_id=caroline%20smith");
    expect(JSON.parse(text)).toMatchObject({
      words: expect.arrayContaining([expect.stringContaining(SPACES)]),
    });
    expect(told("refused")).toMatchObject([
      { level: 40, part: "memory_search", cause: expect.stringContaining(SPACES) },
      { level: 40, part: "memory_writes", cause: expect.stringContaining(SPACES) },
    ]);
    expect(told("degraded")).toEqual([]);
    expect(await health()).toMatchObject({ status: "ok" });
  });

  it.each<[string, unknown, RegExp, RegExp | null]>([
    ["a key", { detail: `bad key ${KEY}` }, /bad key \*\*\*/, null],
    ["a password in an address", { detail: "postgres://mem0:hunter2@db:5432 is away" }, /\/\/\*\*\*@db/, /hunter2/],
    ["control characters", { detail: "one\ntwo\u0000\u001b[31mthree\u202e" }, /one two/, /[\p{Cc}\u202e]/u],
    ["the question", { detail: "no vector for 'Which secret tea does Ada drink?'" }, /no vector for '…'/, /secret tea/],
    [
      "fields",
      { detail: [{ loc: ["body", "filters"], msg: "Field required", input: "Ada drinks" }] },
      /body\.filters: Field required/,
      /Ada drinks/,
    ],
    ["a long text", { detail: "x y ".repeat(2_000) }, /…/, /(?:x y ){90}/],
  ])("passes on what Mem0 said with %s, as one line that is safe to show", async (_what, body, shows, hides) => {
    answer = { status: 422, body };
    const { text } = await send("POST", "/compose", { user_id: "ada", query: "Which secret tea does Ada drink?" });
    const { warnings } = JSON.parse(text) as { warnings: { message: string }[] };
    const said = warnings[0]?.message ?? "";
    expect(said).toMatch(shows);
    expect(said.length).toBeLessThan(450);
    const logged = JSON.stringify(told("refused"));
    for (const seen of [said, logged]) {
      expect(seen).not.toContain(KEY);
      if (hides !== null) expect(seen).not.toMatch(hides);
    }
  });

  it("says why the engine fails, once, and when it works again", async () => {
    engineStatus = 503;
    for (let n = 0; n < 2; n++) expect((await chat("ada")).status).toBe(503);
    expect(told("degraded")).toMatchObject([{ part: "engine", cause: expect.stringContaining("status 503") }]);
    const shown = await health();
    expect(shown).toMatchObject({ status: "degraded", degraded: [{ part: "engine" }] });
    expect(JSON.stringify(shown)).not.toContain("127.0.0.1");
    engineStatus = 400;
    await chat("ada");
    expect(told("recovered")).toMatchObject([{ part: "engine" }]);
    engineStatus = null;
    await chat("ada");
    expect(told("degraded").at(-1)).toMatchObject({ part: "engine", cause: expect.stringMatching(/reached|broke/) });
    expect(JSON.stringify(await health())).not.toContain("127.0.0.1");
  });

  it("says why the engine breaks off its answers, once, and when it does not any more", async () => {
    const bodies = [
      ["chat/completions", { messages: [{ role: "user", content: "Which tea?" }] }],
      ["responses", { input: "Which tea?" }],
      ["messages", { max_tokens: 9, messages: [{ role: "user", content: "Which tea?" }] }],
    ] as const;
    const streamAll = async () => {
      for (const [path, body] of bodies) {
        await send("POST", `/users/ada/v1/${path}`, { model: "m", stream: true, ...body });
      }
    };
    breaksOff = true;
    for (let n = 0; n < 2; n++) await streamAll();
    expect(told("degraded", "recovered")).toMatchObject([
      { part: "engine", cause: expect.stringContaining("broke off") },
    ]);
    const shown = await health();
    expect(shown).toMatchObject({ status: "degraded", degraded: [{ part: "engine" }] });
    expect(JSON.stringify(shown)).not.toContain("127.0.0.1");
    breaksOff = false;
    await streamAll();
    expect(told("degraded", "recovered")).toHaveLength(2);
    expect(await health()).toMatchObject({ status: "ok" });
  });

  it.each([401, 402])("says that the engine refuses the key that it was given for it: %i", async (status) => {
    engineStatus = status;
    await chat("ada");
    // A client's own key is the client's.
    expect(await health()).toMatchObject({ status: "ok" });
    await service.stop();
    await start({ MEMPREFIX_UPSTREAM_API_KEY: KEY });
    for (let n = 0; n < 2; n++) expect((await chat("ada")).status).toBe(status);
    const reason = `the upstream engine refused memprefix's own key with status ${status}`;
    expect(told("degraded")).toMatchObject([{ part: "engine", cause: reason }]);
    expect(await health()).toMatchObject({ status: "degraded", degraded: [{ part: "engine", reason }] });
    engineStatus = 400;
    await chat("ada");
    expect(await health()).toMatchObject({ status: "ok" });
    expect(JSON.stringify(lines)).not.toContain(KEY);
  });

  it("says why the database fails, also where health looks in between, and when it works again", async () => {
    const compose = (user_id: string) => send("POST", "/compose", { user_id, query: "Which tea?" });
    expect((await compose("ada")).status).toBe(200);
    await service.stop();
    const database = new Database(join(dataDir, "memprefix.db"));
    database.exec("update changes set changes = '{'; update scopes set snapshot = '{' where snapshot is not null");
    database.close();
    await start({});
    for (let n = 0; n < 2; n++) {
      expect((await compose("ada")).status).toBe(503);
      expect((await chat("ada")).status).toBe(200);
      expect(await health()).toMatchObject({ status: "degraded", degraded: [{ part: "store" }] });
    }
    expect(told("degraded")).toMatchObject([{ part: "store", cause: expect.stringContaining("damaged") }]);
    expect((await send("GET", "/metrics")).text).toContain('memprefix_degraded{part="store"} 1');
    expect((await compose("bob")).status).toBe(200);
    expect(told("recovered")).toMatchObject([{ part: "store" }]);
    expect(await health()).toMatchObject({ status: "ok" });
  });

  it("says why nothing is written back", async () => {
    await service.stop();
    await start({ MEMPREFIX_WRITE_BACK: "on", MEMPREFIX_MEM0_API_KEY: KEY });
    answer = { status: 507, body: { detail: "No space left" } };
    await chat("ada");
    await vi.waitFor(() => expect(told("degraded").map(({ part }) => part)).toContain("memory_writes"));
    expect(told("degraded")).toMatchObject([
      { part: "memory_search", cause: expect.stringContaining("No space left") },
      { part: "memory_writes", cause: expect.stringContaining("No space left") },
    ]);
  });
});

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}
