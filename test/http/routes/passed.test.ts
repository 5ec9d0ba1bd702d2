import { describe, expect, it } from "vitest";
import { openAiProblemSchema } from "../../../src/http/problems/problem.js";
import { callerOf, sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { clientOf, errorOf } from "./chat-client.js";
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

  it("has the engine's errors, and memprefix's where the engine is gone", async () => {
    engine.list((_request, response) => sendJson(response, 404, { error: { message: "No such model.", code: "x" } }));
    const refused = await errorOf(clientOf(app).models.retrieve("m"));
    expect([refused.status, refused.code]).toEqual([404, "x"]);
    await engine.close();
    const gone = await errorOf(clientOf(app).embeddings.create({ model: "e", input: "Tea" }));
    expect([gone.status, gone.code]).toEqual([502, "upstream_unreachable"]);
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
