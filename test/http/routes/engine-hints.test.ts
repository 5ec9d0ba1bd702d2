import { describe, expect, it } from "vitest";
import { ENGINE_NAMES } from "../../../src/engines/adapters/engine-adapter.js";
import { servedApp } from "../server/served-app.js";

const tea = { id: "m-tea", memory: "Ada drinks green tea" };
const request = { user_id: "ada", conversation_id: "c", query: "Tea?", memories: [tea] };
const plain = [{ role: "user", content: "<memories>\n- Ada drinks green tea\n</memories>\n\nTea?" }];

describe("POST /compose with an engine", () => {
  const app = servedApp();

  it("takes every engine's name, and marks messages for those that want it", async () => {
    const marking = [];
    for (const engine of ENGINE_NAMES) {
      const { messages } = await app.compose({ ...request, user_id: engine, engine });
      if (JSON.stringify(messages) !== JSON.stringify(plain)) marking.push(engine);
    }
    expect(marking).toEqual(["openai-breakpoints", "anthropic"]);
  });

  it("says what to send along", async () => {
    const { engine } = await app.compose({ ...request, request_id: "r-1", engine: "vllm" });
    expect(engine).toEqual({
      fields: { request_id: "r-1", cache_salt: expect.stringMatching(/^[\w-]{43}$/) },
      headers: { "x-request-id": "r-1" },
    });
  });
});

describe("POST /compose where an engine is configured", () => {
  const app = servedApp({ environment: { MEMPREFIX_ENGINE_FAMILY: "sglang" } });

  it("goes by it, unless the request names another", async () => {
    const configured = await app.compose({ ...request, request_id: "r-1" });
    expect(configured.engine.fields).toMatchObject({ rid: "r-1" });
    const named = await app.compose({ ...request, request_id: "r-2", engine: "generic" });
    expect(named.engine.fields).toEqual({});
  });
});

describe("POST /compose where the upstream is OpenAI's API, and nothing else is configured", () => {
  const app = servedApp({ environment: { MEMPREFIX_UPSTREAM_URL: "https://api.openai.com/v1" } });

  it("goes by the model", async () => {
    const before = await app.compose({ ...request, model: "gpt-5-mini" });
    expect(before.engine.fields).toEqual({ prompt_cache_key: expect.any(String) });
    const system = "Be brief and kind. ".repeat(400);
    const later = await app.compose({ ...request, conversation_id: "d", system, model: "gpt-5.6" });
    expect(later.engine.fields).toMatchObject({ prompt_cache_options: { mode: "explicit" } });
    expect(JSON.stringify(later.messages)).toContain("prompt_cache_breakpoint");
  });
});
