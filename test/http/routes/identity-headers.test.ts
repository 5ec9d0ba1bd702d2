import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf, errorOf } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";

describe("a client that names its user and session in headers of its own", () => {
  const engine = openAiEngine();
  const source = answeringSource(["Ada drinks green tea"]);
  const app = servedApp({
    source: () => source,
    upstream: engine,
    environment: { MEMPREFIX_IDENTITY: "user=header:X-Forwarded-User,conversation=header:x-litellm-session-id" },
  });
  const headers = { "x-forwarded-user": "ada", "x-litellm-session-id": "s-1" };

  it("is known by them, in chats and responses; they go on to the engine", async () => {
    const client = clientOf(app, headers);
    const { choices } = await client.chat.completions.create(ask("Which tea?"));
    const messages = [...ask("Which tea?").messages, choices[0]?.message ?? { role: "assistant" as const }];
    await client.chat.completions.create({
      ...ask("?"),
      messages: [...messages, { role: "user", content: "And now?" }],
    });
    expect(source.queries.map(({ scope }) => scope.userId)).toEqual(["ada", "ada"]);
    expect(engine.requests[1]?.body.messages[0]).toEqual(engine.requests[0]?.body.messages[0]);
    expect(JSON.stringify(engine.requests[1]?.body.messages).split("- Ada drinks green tea")).toHaveLength(2);
    expect(engine.requests[0]?.headers).toMatchObject(headers);
    await client.responses.create({ model: "stub-1", input: "Which tea?" });
    expect(source.queries.at(-1)?.scope.userId).toBe("ada");
  });

  it("may name them in memprefix's headers too, but not otherwise", async () => {
    await clientOf(app, { ...headers, "x-memprefix-user": "ada" }).chat.completions.create(ask("Which tea?"));
    const differs = clientOf(app, { ...headers, "x-memprefix-user": "bob" }).chat.completions.create(ask("Which tea?"));
    const { status, message } = await errorOf(differs);
    expect([status, message]).toEqual([422, expect.stringContaining("differs from the header x-forwarded-user")]);
    expect(engine.requests).toHaveLength(1);
  });
});
