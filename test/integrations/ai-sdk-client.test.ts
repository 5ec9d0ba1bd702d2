import { describe, expect, it } from "vitest";
import type { EngineApi } from "../clients/agent-engine.js";
import { lightClient } from "../clients/light-clients.js";
import { tryClient, wrongIn } from "../clients/tried-client.js";

describe("the AI SDK's middleware in a program of its own, with a service", () => {
  it.each<[string, EngineApi]>([
    ["ai-sdk-chat.ts", "chats"],
    ["ai-sdk-responses.ts", "openai"],
    ["ai-sdk-messages.ts", "anthropic"],
  ])("%s: prompts begin with those before, usage is reported", { timeout: 180_000 }, async (name, engine) => {
    const client = await tryClient(lightClient(`../adapters/${name}`), [engine]);
    expect(wrongIn(client)).toEqual([]);
    expect(client.tried.map(({ use }) => use)).toEqual(["json", "stream", "tools", "steps", "structured"]);
  });
});
