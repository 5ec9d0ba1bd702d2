import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";

const tea = { id: "m-tea", memory: "Ada drinks green tea" };
const request = { user_id: "ada", conversation_id: "c", query: "Tea?", memories: [tea] };

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
