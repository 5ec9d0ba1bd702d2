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
