import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf, errorOf } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";

describe("memprefix's headers", () => {
  const engine = openAiEngine();
  const source = answeringSource(["Ada drinks green tea"]);
  const app = servedApp({ source: () => source, upstream: engine, environment: { MEMPREFIX_TOP_K: "7" } });
  const create = (headers: Record<string, string>, memprefix: object = {}) =>
    clientOf(app, { "x-memprefix-user": "ada", ...headers }).chat.completions.create({
      ...ask("Which tea?"),
      memprefix,
    } as never);

  it("name the agent; none goes to the engine", async () => {
    await create({ "x-memprefix-agent": "cook" });
    expect(source.queries.at(-1)).toMatchObject({ scope: { agentId: "cook" } });
    expect(Object.keys(engine.requests[0]?.headers ?? {}).filter((name) => name.startsWith("x-memprefix"))).toEqual([]);
  });

  it("may say what the body says, and nothing else", async () => {
    await create({ "x-memprefix-history": "exact" }, { history: "exact" });
    const { status, message } = await errorOf(create({ "x-memprefix-history": "exact" }, { history: "auto" }));
    expect([status, message]).toEqual([
      422,
      expect.stringContaining("memprefix.history: differs from the header x-memprefix-history"),
    ]);
  });

  it.each([
    ["x-memprefix-history", "best"],
    ["x-memprefix-bypass", "yes"],
  ])("are checked: %s: %s", async (name, value) => {
    const { status, message } = await errorOf(create({ [name]: value }));
    expect([status, message]).toEqual([422, expect.stringContaining(name)]);
  });

  it("leave the number of memories to the setting", async () => {
    await create({});
    expect(source.queries.at(-1)?.topK).toBe(7);
  });
});
