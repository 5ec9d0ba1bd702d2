import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf, errorOf } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";
import { storedExchanges } from "./stored-rows.js";

describe("memprefix's headers", () => {
  const engine = openAiEngine();
  const source = answeringSource(["Ada drinks green tea"]);
  const app = servedApp({ source: () => source, upstream: engine, environment: { MEMPREFIX_TOP_K: "7" } });
  const create = (headers: Record<string, string>, memprefix: object = {}) =>
    clientOf(app, { "x-memprefix-user": "ada", ...headers }).chat.completions.create({
      ...ask("Which tea?"),
      memprefix,
    } as never);

  it("name the agent, the policy and the number of memories; none goes to the engine", async () => {
    await create({ "x-memprefix-agent": "cook", "x-memprefix-policy": "retrieval", "x-memprefix-top-k": "3" });
    expect(source.queries.at(-1)).toMatchObject({ scope: { agentId: "cook" }, topK: 3 });
    const [request] = storedExchanges(app.database).requests;
    expect(request?.answer).toMatchObject({ plan: { policy: "retrieval" } });
    expect(Object.keys(engine.requests[0]?.headers ?? {}).filter((name) => name.startsWith("x-memprefix"))).toEqual([]);
  });

  it("may say what the body says, and nothing else", async () => {
    await create({ "x-memprefix-top-k": "3" }, { top_k: 3 });
    const { status, message } = await errorOf(create({ "x-memprefix-top-k": "3" }, { top_k: 4 }));
    expect([status, message]).toEqual([
      422,
      expect.stringContaining("memprefix.top_k: differs from the header x-memprefix-top-k"),
    ]);
  });

  it.each([
    ["x-memprefix-top-k", "many"],
    ["x-memprefix-top-k", "0"],
    ["x-memprefix-policy", "best"],
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
