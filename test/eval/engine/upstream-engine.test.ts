import { describe, expect, it } from "vitest";
import type { Upstream } from "../../../src/engines/upstream/upstream.js";
import { upstreamEngine } from "../../../src/eval/engine/upstream-engine.js";
import { EXACT_ARM } from "../run/run-fixture.js";

function listing(status: number, json: string): Upstream {
  async function* body() {
    yield Buffer.from(json);
  }
  return { name: "http://127.0.0.1:1/v1", send: async () => ({ status, headers: [], body: body() }) };
}

async function promptTokensOf(upstream: Upstream): Promise<number | null> {
  const options = { model: "m", family: "vllm", maxTokens: 64, salt: "s", isScored: true, scores: ["words"] } as const;
  return (await upstreamEngine({ ...options, upstream }).open(EXACT_ARM, "conv-26")).promptTokens;
}

describe("the limit of an engine behind an address", () => {
  it("is what its list of models says, less the answer", async () => {
    const list = JSON.stringify({ data: [{ id: "m", max_model_len: 8_192 }, { id: "other" }] });
    expect(await promptTokensOf(listing(200, list))).toBe(8_128);
  });

  it.each([
    [200, "no list"],
    [404, "{}"],
    [200, JSON.stringify({ data: [{ id: "m" }] })],
  ])("is not known where it says nothing: %i %s", async (status, json) => {
    expect(await promptTokensOf(listing(status, json))).toBeNull();
  });
});
