import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openAiProblemSchema } from "../../../src/http/problems/problem.js";
import { callerOf, sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { clientOf } from "./chat-client.js";
import { openAiEngine, sendJson } from "./openai-engine.js";

describe("a route below /v1 that is the engine's alone", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });
  const seen = () => engine.requests.map(({ method, url }) => `${method} ${url}`);

  it("is passed to it, and its answer back, unmodified", async () => {
    const embedding = { object: "list", model: "e", data: [{ object: "embedding", index: 0, embedding: [0.5] }] };
    engine.behave((_request, response) => sendJson(response, 200, { ...embedding, usage: { prompt_tokens: 1 } }));
    const client = clientOf(app);
    const { data } = await client.embeddings.create({ model: "e", input: "Tea", encoding_format: "float" });
    expect(data[0]?.embedding).toEqual([0.5]);
    expect(JSON.parse(engine.requests[0]?.raw ?? "")).toEqual({ model: "e", input: "Tea", encoding_format: "float" });
    expect(engine.requests[0]?.headers.authorization).toBe("Bearer sk-of-the-client");
    await client.completions.create({ model: "m", prompt: "Tea" });
    await client.models.retrieve("org/model:free");
    await client.responses.delete("resp_1");
    expect(seen()).toEqual([
      "POST /v1/embeddings",
      "POST /v1/completions",
      "GET /v1/models/org%2Fmodel:free",
      "DELETE /v1/responses/resp_1",
    ]);
    expect(app.faults).toEqual([]);
  });

  it("gets bytes of any type, and the query", async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
    let received = Buffer.alloc(0);
    engine.behave(({ headers, raw }, response) => {
      received = Buffer.from(raw);
      response.writeHead(200, { "content-type": "audio/mpeg", "x-type": headers["content-type"] ?? "" }).end(bytes);
    });
    const answer = await fetch(`${app.base}/v1/tokenize?a=1`, {
      method: "POST",
      headers: { "content-type": "text/plain", connection: "close" },
      body: "{}",
    });
    expect(new Uint8Array(await answer.arrayBuffer())).toEqual(bytes);
    expect(received.toString()).toBe("{}");
    expect([answer.headers.get("content-type"), answer.headers.get("x-type")]).toEqual(["audio/mpeg", "text/plain"]);
    expect(seen()).toEqual(["POST /v1/tokenize?a=1"]);
  });

  it("never leaves the engine's API", async () => {
    for (const path of ["/v1/%2e%2e/admin", "/v1/a%2F..%2fc", "/v1/a%5Cb", "/v1/a%00", "/v1//admin", "/v1/a/"]) {
      const { status } = await sendWith(app, {}, "GET", path);
      expect([path, status]).toEqual([path, 404]);
    }
    expect(seen()).toEqual([]);
  });

  it("says what to use where a base URL lacks /v1, or has it twice", async () => {
    for (const path of ["/chat/completions", "/v1/v1/chat/completions"]) {
      const { text, status } = await app.send("POST", path, {});
      expect(status).toBe(404);
      expect(JSON.parse(text).detail).toContain("use /v1/chat/completions, with a base URL that ends with one /v1");
    }
    expect(seen()).toEqual([]);
  });

  it("is passed with a key of memprefix's only where the engine keeps nothing of it", async () => {
    engine.behave((_request, response) => sendJson(response, 200, {}));
    const { send } = callerOf(app, "acme");
    expect((await send("POST", "/v1/embeddings", { model: "e", input: "Tea" })).status).toBe(200);
    expect((await send("GET", "/v1/models/m")).status).toBe(200);
    for (const [method, path] of [
      ["GET", "/v1/files"],
      ["DELETE", "/v1/responses/resp_1"],
      ["GET", "/v1/responses/r"],
    ]) {
      const { status, text } = await send(method ?? "", path ?? "");
      expect([path, status]).toEqual([path, 404]);
      expect(openAiProblemSchema.parse(JSON.parse(text)).error.message).toContain("while API keys are in use");
    }
    expect(seen()).toEqual(["POST /v1/embeddings", "GET /v1/models/m"]);
    expect(engine.requests[0]?.headers.authorization).toBeUndefined();
  });
});

const MIB = 1024 * 1024;

describe("an upload to the engine", () => {
  /** What the engine has of the newest upload. */
  let received = 0;
  let take: (incoming: IncomingMessage) => Promise<void>;
  let encodings: (string | undefined)[] = [];
  let server: Server;
  const upstream = {
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    },
  };
  beforeEach(async () => {
    received = 0;
    encodings = [];
    take = async (incoming) => {
      for await (const chunk of incoming) received += (chunk as Buffer).length;
    };
    server = createServer(async (incoming, response) => {
      encodings.push(incoming.headers["content-encoding"], incoming.headers["transfer-encoding"]);
      await take(incoming).catch(() => {});
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ bytes: received }));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  });
  const limits = { maxBodyBytes: MIB, maxBytesRead: MIB, silentMs: 300, maxInFlight: 4 };
  const app = servedApp({ upstream, times: { limits } });
  const open = (path: string, headers: Readonly<Record<string, string | number>>, more = {}) =>
    request(app.base + path, { method: "POST", headers, ...more }).on("error", () => {});
  const answerOf = async (sent: ReturnType<typeof open>) => {
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    return { status: answer.statusCode, connection: answer.headers.connection, body: await text(answer) };
  };
  const filled = Buffer.alloc(MIB, 7);

  it.each([
    ["/v1/files", { "content-type": "multipart/form-data; boundary=x", "content-length": 48 * MIB }],
    ["/v1/audio/transcriptions", { "content-type": "multipart/form-data; boundary=x" }],
    ["/v1/uploads/u1/parts", { "content-type": "application/octet-stream", "content-encoding": "gzip" }],
  ])("is streamed as it is, without a limit: %s", async (path, headers) => {
    const sent = open(path, headers);
    const answer = answerOf(sent);
    for (let part = 1; part <= 48; part++) {
      if (!sent.write(filled)) await once(sent, "drain");
      // It arrives before all of it is sent.
      if (part === 24) await vi.waitFor(() => expect(received).toBeGreaterThan(8 * MIB), 10_000);
    }
    sent.end();
    expect(await answer).toMatchObject({ status: 200, body: JSON.stringify({ bytes: 48 * MIB }) });
    expect(encodings[0]).toBe((headers as Record<string, unknown>)["content-encoding"]);
    expect(encodings[1]).toBe("content-length" in headers ? undefined : "chunked");
    expect(app.faults).toEqual([]);
  });

  it("waits for an engine that is slow to take it", async () => {
    let go = () => {};
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    const { take: takeAll } = { take };
    take = async (incoming) => {
      await held;
      await takeAll(incoming);
    };
    const sent = open("/v1/files", { "content-length": 64 * MIB });
    const answer = answerOf(sent);
    let written = 0;
    const writing = (async () => {
      for (; written < 64; written++) if (!sent.write(filled)) await once(sent, "drain");
      sent.end();
    })();
    await vi.waitFor(() => expect(encodings).toHaveLength(2));
    await new Promise((later) => setTimeout(later, 200));
    // What is on the way are the sockets' buffers.
    expect(written).toBeLessThan(32);
    go();
    await writing;
    expect((await answer).body).toBe(JSON.stringify({ bytes: 64 * MIB }));
  });

  it("ends at the engine when its client goes away, or is silent, or the engine answers early", async () => {
    let ended = 0;
    take = async (incoming) => {
      incoming.once("close", () => ended++);
      for await (const _ of incoming);
    };
    const gone = open("/v1/files", { "content-length": 10 * MIB });
    gone.write(filled);
    await vi.waitFor(() => expect(encodings).toHaveLength(2));
    gone.destroy();
    await vi.waitFor(() => expect(ended).toBe(1));
    const silent = open("/v1/files", { "content-length": 10 * MIB });
    silent.write(filled);
    expect(await answerOf(silent)).toMatchObject({ status: 408, connection: "close" });
    await vi.waitFor(() => expect(ended).toBe(2));
    take = async () => {};
    const early = open("/v1/files", { "content-length": 10 * MIB });
    early.write(filled);
    expect(await answerOf(early)).toMatchObject({ status: 200, connection: "close" });
    expect(app.faults).toEqual([]);
  });

  it("takes half of the places in flight at most, and is refused as a prompt is where the engine is gone", async () => {
    const held = [1, 2].map(() => open("/v1/files", { "content-length": 10 }));
    for (const one of held) one.write("1");
    await vi.waitFor(() => expect(encodings).toHaveLength(4));
    expect((await sendWith(app, {}, "POST", "/v1/files", "{}")).status).toBe(503);
    expect((await sendWith(app, {}, "GET", "/livez")).status).toBe(200);
    for (const one of held) one.end("123456789");
    await Promise.all(held.map(answerOf));
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
    expect((await sendWith(app, {}, "POST", "/v1/files", "{}")).status).toBe(502);
    server.listen(0);
  });
});
