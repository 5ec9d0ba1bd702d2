import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { expectPromises } from "../prompt/prompt-promises.js";
import { memories, memory, system, toolExchange, UserScope } from "./scope-fixture.js";

describe("compose, one prompt", () => {
  it("needs a message that is no instruction, and changes nothing where there is none", () => {
    const scope = new UserScope();
    for (const messages of [[], [system("Be brief.")]]) {
      expect(() => scope.compose(messages, memories("a"))).toThrow("no instruction");
    }
    expect(scope.state.register.size + scope.state.index.size).toBe(0);
  });

  it("passes fields, parts and roles that it does not know through untouched", () => {
    const image = { type: "image_url", image_url: { url: "data:,", detail: "low" } };
    const messages: ChatMessage[] = [
      { role: "developer", content: "Be brief.", name: "house" },
      ...toolExchange("42"),
      { role: "critic", content: null, verdict: { good: [1, null] } },
      { role: "user", content: [{ type: "text", text: "And this?", cache_control: { type: "ephemeral" } }, image] },
    ];
    const composition = new UserScope().compose(messages, [memory("a", "Likes tea.")]);
    expect(composition.messages.slice(0, 4)).toEqual(messages.slice(0, 4));
    const section = { type: "text", text: "<memories>\n- Likes tea.\n</memories>" };
    expect(composition.messages[4]).toEqual({
      role: "user",
      content: [section, ...((messages[4]?.content ?? []) as readonly object[])],
    });
    expectPromises(composition, [memory("a", "Likes tea.")]);
  });
});
