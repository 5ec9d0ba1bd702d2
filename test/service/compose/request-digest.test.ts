import { describe, expect, it } from "vitest";
import { readComposeOptions } from "../../../src/service/compose/compose-request.js";
import { requestDigest } from "../../../src/service/compose/request-digest.js";

describe("a request's digest", () => {
  it("stays what it is in stored requests: short, and with every field", () => {
    const short = readComposeOptions({ userId: "ana", query: "Tea?" });
    expect(requestDigest(short)).toBe("tRghKon-xG4U0xT6s2f7KWlQToQh3-veTnLjJtfiwWM");
    const whole = {
      ...readComposeOptions({
        userId: "ana",
        agentId: "a",
        conversationId: "c",
        requestId: "r",
        messages: [{ role: "user", content: [{ type: "text", text: "Tea?" }] }],
        // Of a memory's fields, the id and the text count.
        memories: [{ id: "m", memory: "Green.", created_at: "2023-05-08T13:56:00Z", categories: ["drinks"] }],
        system: "Be kind.",
        topK: 7,
        memoryBudgetTokens: 100,
        memoryBudgetRatio: 1.5,
        policy: "carry-over",
        retention: "keep",
        annotations: { order: false },
        engine: "vllm",
        toolMemories: "in_result",
        prompt: true,
      }),
      marksElsewhere: 2,
      maxPromptTokens: 900,
    };
    expect(requestDigest(whole)).toBe("dqbGOvvmKJUB6UtA1AeU4zBnafQaBg8RVoh8K9Dp_mc");
  });

  it("is the same wherever the prompt goes, and another for another question, number of memories or policy", () => {
    const asked = { userId: "ana", query: "Tea?" };
    const digestOf = (options: object) => requestDigest(readComposeOptions({ ...asked, ...options }));
    for (const same of [{ engine: "sglang" }, { prompt: true }, { requestId: "r" }, { toolMemories: "own_message" }]) {
      expect(digestOf(same), JSON.stringify(same)).toBe(digestOf({}));
    }
    const memories = [{ id: "m", memory: "Green.", created_at: "2023-05-08T13:56:00Z" }];
    const later = [{ id: "m", memory: "Green.", created_at: "2023-06-08T13:56:00Z" }];
    expect(digestOf({ memories })).toBe(digestOf({ memories: later }));
    const dated = { blockTemplate: "{date} {memory}" };
    expect(digestOf({ memories, ...dated })).not.toBe(digestOf({ memories: later, ...dated }));
    const others = [
      dated,
      { timeZone: "Europe/Berlin" },
      { query: "Milk?" },
      { topK: 3 },
      { policy: "sorted" },
      { retention: "keep" },
      { agentId: "b" },
    ];
    expect(new Set([{}, ...others].map(digestOf)).size).toBe(others.length + 1);
  });
});
