import { describe, expect, it } from "vitest";
import { readComposeOptions, requestDigest } from "../../../src/service/compose/compose-request.js";

describe("a request's digest", () => {
  it("is the same wherever the prompt goes, and another for another question, number of memories or policy", () => {
    const asked = { userId: "ana", query: "Tea?" };
    const digestOf = (options: object) => requestDigest(readComposeOptions({ ...asked, ...options }));
    for (const same of [{ engine: "sglang" }, { requestId: "r" }, { model: "qwen3" }]) {
      expect(digestOf(same), JSON.stringify(same)).toBe(digestOf({}));
    }
    const memories = [{ id: "m", memory: "Green.", created_at: "2023-05-08T13:56:00Z" }];
    const later = [{ id: "m", memory: "Green.", created_at: "2023-06-08T13:56:00Z" }];
    expect(digestOf({ memories })).toBe(digestOf({ memories: later }));
    const dated = { dates: true };
    expect(digestOf({ memories, ...dated })).not.toBe(digestOf({ memories: later, ...dated }));
    const others = [
      dated,
      { query: "Milk?" },
      { topK: 3 },
      { policy: "sorted" },
      { retention: "keep" },
      { annotations: false },
      { search: { rerank: true } },
      { agentId: "b" },
    ];
    expect(new Set([{}, ...others].map(digestOf)).size).toBe(others.length + 1);
  });
});
