import { describe, expect, it } from "vitest";
import { lightAdapter } from "../clients/light-clients.js";
import { tryClient, wrongIn } from "../clients/tried-client.js";

/** `npm run clients` tries it with the newest AI SDK, and with models of every version of its interface. */
describe("the AI SDK's middleware in a program of its own, with a service", () => {
  it.each(["ai-sdk-chat.ts", "ai-sdk-responses.ts", "ai-sdk-messages.ts"])(
    "%s: prompts begin with those before, usage is reported",
    { timeout: 180_000 },
    async (name) => {
      const client = await tryClient(lightAdapter(name));
      expect(wrongIn(client)).toEqual([]);
      expect(client.tried.map(({ use }) => use)).toEqual(["json", "stream", "tools", "steps", "structured"]);
    },
  );
});
