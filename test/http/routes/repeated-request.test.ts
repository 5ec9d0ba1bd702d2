import { describe, expect, it } from "vitest";
import { composedOf, servedApp } from "../server/served-app.js";
import { rowCounts } from "./stored-rows.js";

const tea = { id: "m-tea", memory: "Ada drinks green tea" };
const paris = { id: "m-paris", memory: "Ada lives in Paris" };
const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"at":"Paris"}' } };

describe("a repeated request_id", () => {
  const app = servedApp();

  it.each([
    ["duplicates", { query: "Tea?", memories: [tea, tea, { ...tea, id: "m-2" }], memory_budget_tokens: 5 }],
    [
      "a tool's result",
      {
        conversation_id: "c",
        messages: [
          { role: "user", name: "ada", content: [{ type: "text", text: "Weather?", cache_control: { type: "x" } }] },
          { role: "assistant", tool_calls: [call] },
          { role: "tool", content: "Sunny", tool_call_id: "call_1" },
        ],
        memories: [paris],
      },
    ],
  ])("gives the same bytes again, and stores nothing: %s", async (_what, body) => {
    const request = { user_id: "ada", request_id: "r-1", ...body };
    const first = await app.send("POST", "/compose", request);
    expect(first.status).toBe(200);
    const stored = rowCounts(app.database);
    const second = await app.send("POST", "/compose", request);
    expect(second).toEqual(first);
    expect(rowCounts(app.database)).toEqual(stored);
  });

  it("gives the same bytes after the user's prompts went on and memories changed", async () => {
    const at = { user_id: "ada", conversation_id: "c" };
    const asked = [{ role: "user", content: "Tea?" }];
    const first = { ...at, request_id: "r-1", messages: asked, memories: [tea, paris] };
    const answered = await app.send("POST", "/compose", first);
    const moved = { ...paris, memory: "Ada lives in Lyon" };
    await app.compose({
      ...at,
      messages: [...asked, { role: "assistant", content: "Green." }, { role: "user", content: "And?" }],
      memories: [moved],
    });
    await app.compose({ user_id: "ada", query: "Where?", memories: [moved, tea] });
    expect(await app.send("POST", "/compose", first)).toEqual(answered);
  });

  it("gives the stored answer with a warning where the request is another one", async () => {
    const first = composedOf(
      await app.send("POST", "/compose", { user_id: "ada", request_id: "r-1", query: "Tea?", memories: [tea] }),
    );
    const stored = rowCounts(app.database);
    const other = await app.compose({ user_id: "ada", request_id: "r-1", query: "Where?", memories: [paris] });
    expect(other).toEqual({ ...first, warnings: [expect.objectContaining({ code: "request_id_reused" })] });
    expect(rowCounts(app.database)).toEqual(stored);
  });

  it("is answered once, though it comes many times at once", async () => {
    const request = { user_id: "ada", request_id: "r-1", query: "Tea?", memories: [tea, paris] };
    const answers = await Promise.all(Array.from({ length: 20 }, () => app.send("POST", "/compose", request)));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(rowCounts(app.database)).toMatchObject({ turns: 1, requests: 1 });
  });
});

describe("a request without request_id", () => {
  const app = servedApp();

  it("gets a name of its own, under which it can be repeated", async () => {
    const request = { user_id: "ada", query: "Tea?", memories: [tea] };
    const first = await app.compose(request);
    const second = await app.compose(request);
    expect(second.request_id).not.toBe(first.request_id);
    expect(await app.compose({ ...request, request_id: first.request_id })).toEqual(first);
  });
});
