import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { openHostedMem0 } from "../../../src/memory/hosted-mem0.js";
import { type MemorySource, withDeadline } from "../../../src/memory/memory-source.js";
import { openOwnMem0 } from "../../../src/memory/own-mem0.js";
import { openRestMem0 } from "../../../src/memory/rest-mem0.js";
import { standIn } from "../../stand-in.js";
import { sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { openAiEngine } from "./openai-engine.js";

const KEY = "m0-secret";
const SEARCH_MS = 5_000;
const MEMORY = "Ada drinks green tea.";

type Handle = (request: IncomingMessage, response: ServerResponse, body: Readonly<Record<string, unknown>>) => unknown;

/** Every source of another system, each against a server of its own. */
const SOURCES: readonly (readonly [string, (url: string) => MemorySource])[] = [
  ["REST", (url) => openRestMem0({ url, apiKey: KEY })],
  ["the platform", (url) => openHostedMem0({ url, apiKey: KEY })],
  [
    "the caller's own",
    (url) =>
      openOwnMem0({
        async search(query, options) {
          const body = JSON.stringify({ query, ...options });
          const answer = await fetch(`${url}/search`, { method: "POST", body });
          if (!answer.ok) throw new Error(`status ${answer.status}`);
          return answer.json();
        },
      }),
  ],
];

describe.each(SOURCES)("a search of %s", (name, open) => {
  let handle: Handle;
  let url = "";
  const searches: Readonly<Record<string, unknown>>[] = [];
  const engine = openAiEngine();
  const serve: RequestListener = async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString();
    const body: Readonly<Record<string, unknown>> = text === "" ? {} : JSON.parse(text);
    if (request.method !== "POST")
      return setTimeout(() => response.writeHead(404).end('{"detail":"Memory not found"}'), 50);
    searches.push(body);
    return handle(request, response, body);
  };
  beforeEach(async () => {
    searches.length = 0;
    url = await standIn(serve);
  });
  const app = servedApp({
    upstream: engine,
    source: () => withDeadline(open(url), { searchMs: SEARCH_MS, writeMs: SEARCH_MS }),
  });
  const found = (response: ServerResponse) =>
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ results: [{ id: "m1", memory: MEMORY }] }));
  const ask = async (content: unknown, earlier: readonly object[] = []) => {
    const body = { user: "ada", model: "stub-1", messages: [...earlier, { role: "user", content }] };
    const { status, headers } = await sendWith(app, {}, "POST", "/v1/chat/completions", body);
    const sent = engine.requests.at(-1)?.raw ?? "";
    return { status, hasMemory: sent.includes(MEMORY), warnings: headers.get("x-memprefix-warnings") };
  };

  it.each<readonly [string, Handle]>([
    ["429 with Retry-After in seconds", (_, r) => r.writeHead(429, { "retry-after": "0" }).end("{}")],
    [
      "429 with Retry-After as a date",
      (_, r) => r.writeHead(429, { "retry-after": new Date(Date.now()).toUTCString() }).end("{}"),
    ],
    ["503", (_, r) => r.writeHead(503).end("busy")],
    ["502 of a gateway", (_, r) => r.writeHead(502).end("<html>")],
    ["a reset", (request) => request.socket.resetAndDestroy()],
    ["a reset half way", (request, r) => r.writeHead(200).write("{", () => request.socket.resetAndDestroy())],
    ["307 to a server that is not followed", (_, r) => r.writeHead(307, { location: "http://127.0.0.1:9/x" }).end()],
    ["307 to the same server", ({ url: path }, r) => r.writeHead(307, { location: `${path}?again` }).end()],
  ])("is tried once more after %s", async (_name, fault) => {
    handle = (request, response, body) => (searches.length === 1 ? fault(request, response, body) : found(response));
    expect(await ask("What does Ada drink?")).toEqual({ status: 200, hasMemory: true, warnings: null });
    expect(searches).toHaveLength(2);
    expect(searches[1]).toEqual(searches[0]);
  });

  it("is given up after the second failure, and at once where its server says to wait longer than the time-out", async () => {
    handle = (_request, response) => response.writeHead(503).end();
    expect(await ask("Tea?")).toEqual({ status: 200, hasMemory: false, warnings: "memory_source_failed" });
    expect(searches).toHaveLength(2);
    // A caller's own client says nothing of it.
    if (name === "the caller's own") return;
    searches.length = 0;
    handle = (_request, response) => response.writeHead(429, { "retry-after": "60" }).end();
    expect(await ask("Tea?")).toMatchObject({ hasMemory: false, warnings: "memory_source_failed" });
    expect(searches).toHaveLength(1);
  });

  it("asks for no more than an embedding model takes, and for no image's base64", async () => {
    const image = Buffer.from(Array.from({ length: 90_000 }, (_, at) => (at * 7_919) % 256)).toString("base64");
    const lines = image.replace(/(.{76})/g, "$1\n");
    const tokens = (query: string) => query.match(/[A-Za-z]{1,2}|[^A-Za-z\s]/gu)?.length ?? 0;
    handle = (_request, response, { query }) =>
      tokens(String(query)) > 2_048 ? response.writeHead(400).end('{"detail":"too long"}') : found(response);
    const queried = async (content: unknown, earlier?: readonly object[]) => {
      expect(await ask(content, earlier)).toEqual({ status: 200, hasMemory: true, warnings: null });
      const query = String(searches.at(-1)?.["query"]);
      expect(query).not.toContain(image.slice(100, 140));
      return query;
    };
    const pasted = `What is this about? ${"The museum opens at nine. ".repeat(12_000)} And when does Ada go?`;
    const ends = await queried(pasted);
    expect([ends.startsWith("What is this about?"), ends.endsWith("when does Ada go?")]).toEqual([true, true]);
    for (const text of [`data:image/png;base64,${image}`, image, lines, `![a cat](data:image/jpeg;base64,${lines})`]) {
      const query = await queried(`Whose is this? ${text}\nIs it Ada's?`);
      expect([query.includes("Whose is this?"), query.includes("Is it Ada's?")]).toEqual([true, true]);
    }
    const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${image}` } };
    expect(await queried([picture, { type: "text", text: "What is on it?" }])).toBe("What is on it?");
    const earlier = [
      { role: "user", content: "Look at Ada's cup." },
      { role: "assistant", content: "Where?" },
    ];
    expect(await queried([picture], earlier)).toBe("Look at Ada's cup.");
    for (const word of ["x".repeat(300_000), "茶".repeat(50_000), "😀".repeat(50_000), "1".repeat(50_000)])
      expect((await queried(word)).isWellFormed?.() ?? true).toBe(true);
  }, 60_000);

  it("warns of nothing where many are under way at once", async () => {
    const warned = vi.fn();
    // Packages that are loaded meanwhile may warn of themselves.
    const onWarning = ({ name, message }: Error) => name === "MaxListenersExceededWarning" && warned(message);
    process.on("warning", onWarning);
    handle = (_request, response) => setTimeout(() => found(response), 50);
    for (let turn = 0; turn < 2; turn++) {
      const all = Array.from({ length: 24 }, (_, at) =>
        sendWith(app, { "x-memprefix-conversation": "tea" }, "POST", "/v1/chat/completions", {
          user: `user-${at}`,
          messages: [{ role: "user", content: `Tea ${turn} of ${at}?` }],
        }),
      );
      expect((await Promise.all(all)).map(({ status }) => status)).toEqual(all.map(() => 200));
    }
    await new Promise(setImmediate);
    process.off("warning", onWarning);
    expect(warned).not.toHaveBeenCalled();
  });
});

describe("Mem0's published image, which takes ids at the top only", () => {
  const engine = openAiEngine();
  const searches: Readonly<Record<string, unknown>>[] = [];
  let takes: "top" | "filters" | "none" = "top";
  let source: MemorySource;
  beforeEach(async () => {
    searches.length = 0;
    takes = "top";
    const url = await standIn(async (request, response) => {
      const body: Readonly<Record<string, unknown>> = JSON.parse(
        Buffer.concat(await request.toArray()).toString() || "{}",
      );
      searches.push(body);
      const ids = takes === "top" ? body : takes === "filters" ? body["filters"] : {};
      if ((ids as { user_id?: string } | undefined)?.user_id !== "ada")
        return response.writeHead(500).end("{\"detail\":\"At least one of 'user_id', 'agent_id' must be provided.\"}");
      return response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ results: [{ id: "m1", memory: MEMORY, user_id: "ada" }] }));
    });
    source = openRestMem0({ url });
  });
  const app = servedApp({ upstream: engine, source: () => source });
  const ask = async () => {
    const before = searches.length;
    const body = { user: "ada", messages: [{ role: "user", content: "Tea?" }] };
    const { headers } = await sendWith(app, {}, "POST", "/v1/chat/completions", body);
    return [searches.length - before, headers.get("x-memprefix-warnings")];
  };

  it("is searched in its own form after one refusal, and a newer one that takes its place in the newer form", async () => {
    expect([await ask(), await ask()]).toEqual([
      [2, null],
      [1, null],
    ]);
    expect(searches.at(-1)).toMatchObject({ query: "Tea?", user_id: "ada" });
    expect(searches.at(-1)).not.toHaveProperty("filters");
    takes = "filters";
    expect([await ask(), await ask()]).toEqual([
      [2, null],
      [1, null],
    ]);
    takes = "none";
    expect(await ask()).toEqual([1, "memory_source_failed"]);
  });
});
