import { describe, expect, it } from "vitest";
import { isUnsafe, MAX_BODY_NESTING } from "../../../src/http/guards/safe-json.js";
import { openAiEngine } from "../routes/openai-engine.js";
import { servedApp } from "../server/served-app.js";

const nested = (depth: number, open = "[", close = open === "[" ? "]" : "}") =>
  `${open.repeat(depth)}1${close.repeat(depth)}`;

/** A body of each route, with something nested in one of its fields. */
const bodies = (value: string): readonly (readonly [string, string, string])[] => [
  ["/compose", "messages", `{"user_id":"a","messages":[{"role":"user","content":"Hi?","x":${value}}],"memories":[]}`],
  ["/compose/batch", "requests", `{"requests":[${value}]}`],
  ["/feedback", "user_id", `{"user_id":${value}}`],
  ["/evict", "request_ids", `{"request_ids":${value}}`],
  ["/memories", "metadata", `{"user_id":"a","memories":["x"],"metadata":{"x":${value}}}`],
  ["/v1/chat/completions", "tools", `{"user":"u","messages":[{"role":"user","content":"Hi?"}],"tools":${value}}`],
  ["/v1/chat/completions", "messages", `{"user":"u","messages":[{"role":"user","content":[{"x":${value}}]}]}`],
  ["/v1/chat/completions", "memprefix", `{"user":"u","messages":[],"memprefix":{"annotations":{"x":${value}}}}`],
  ["/v1/chat/completions", "memories", `{"user":"u","messages":[],"memories":[{"x":${value}}]}`],
];

describe("a body that is nested too deep", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });

  it.each([MAX_BODY_NESTING, 5_000, 200_000])("is a 422 that names the field, at %d levels", async (depth) => {
    for (const open of ["[", '{"a":']) {
      for (const [path, field, body] of bodies(nested(depth, open))) {
        const { status, text } = await app.send("POST", path, new TextEncoder().encode(body), "application/json");
        const message = `must not be nested more than ${MAX_BODY_NESTING} levels deep`;
        expect([path, status, JSON.parse(text).errors]).toEqual([path, 422, [{ field, message }]]);
      }
    }
    expect(app.faults).toEqual([]);
  });

  it("goes on to the engine where it is not", async () => {
    const tools = nested(MAX_BODY_NESTING - 1);
    const body = `{"user":"u","model":"m","messages":[{"role":"user","content":"Hi?"}],"tools":${tools}}`;
    const { status } = await app.send(
      "POST",
      "/v1/chat/completions",
      new TextEncoder().encode(body),
      "application/json",
    );
    expect(status).toBe(200);
  });
});

describe("the depth of a JSON text", () => {
  it("is that of its brackets, not of brackets in its texts", () => {
    expect(isUnsafe(JSON.stringify({ a: "[".repeat(1_000), b: '\\"[{'.repeat(500), c: [["]"]] }))).toBe(false);
    expect(isUnsafe(`{"a":"\\\\","b":${nested(MAX_BODY_NESTING)}}`)).toBe(true);
    expect(isUnsafe(nested(MAX_BODY_NESTING))).toBe(false);
    expect(isUnsafe(nested(MAX_BODY_NESTING + 1))).toBe(true);
    for (const json of ["[[]],".repeat(1_000), '"'.repeat(9), ""]) expect(isUnsafe(json)).toBe(false);
  });
});
