import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf, errorOf } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";
import { storedExchanges } from "./stored-rows.js";

describe("memstem's headers", () => {
  const engine = openAiEngine();
  const source = answeringSource(["Ada drinks green tea"]);
  const app = servedApp({ source: () => source, upstream: engine, environment: { MEMSTEM_TOP_K: "7" } });
  const create = (headers: Record<string, string>, memstem: object = {}) =>
    clientOf(app, { "x-memstem-user": "ada", ...headers }).chat.completions.create({
      ...ask("Which tea?"),
      memstem,
    } as never);

  it("name the agent, the policy and the number of memories; none goes to the engine", async () => {
    await create({ "x-memstem-agent": "cook", "x-memstem-policy": "retrieval", "x-memstem-top-k": "3" });
    expect(source.queries.at(-1)).toMatchObject({ scope: { agentId: "cook" }, topK: 3 });
    const [request] = storedExchanges(app.database).requests;
    expect(request?.answer).toMatchObject({ plan: { policy: "retrieval" } });
    expect(Object.keys(engine.requests[0]?.headers ?? {}).filter((name) => name.startsWith("x-memstem"))).toEqual([]);
  });

  it("may say what the body says, and nothing else", async () => {
    await create({ "x-memstem-top-k": "3" }, { top_k: 3 });
    const { status, message } = await errorOf(create({ "x-memstem-top-k": "3" }, { top_k: 4 }));
    expect([status, message]).toEqual([
      422,
      expect.stringContaining("memstem.top_k: differs from the header x-memstem-top-k"),
    ]);
  });

  it.each([
    ["x-memstem-top-k", "many"],
    ["x-memstem-top-k", "0"],
    ["x-memstem-policy", "best"],
    ["x-memstem-bypass", "yes"],
  ])("are checked: %s: %s", async (name, value) => {
    const { status, message } = await errorOf(create({ [name]: value }));
    expect([status, message]).toEqual([422, expect.stringContaining(name)]);
  });

  it("leave the number of memories to the setting", async () => {
    await create({});
    expect(source.queries.at(-1)?.topK).toBe(7);
  });
});
