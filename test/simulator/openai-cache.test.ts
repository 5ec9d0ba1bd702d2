import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OpenAiCache } from "../../src/simulator/openai-cache.js";
import { anyTraffic, longestShared, run } from "./served-prompts.js";

describe("OpenAI's cache before GPT-5.6", () => {
  it("hits the longest prefix shared with any earlier prompt of the last minutes in its steps", () => {
    fc.assert(
      fc.property(anyTraffic(300, 20), fc.integer({ min: 1, max: 60 }), (traffic, ttlMs) => {
        const cache = new OpenAiCache({ ttlMs });
        traffic.forEach(({ prompt, now }, n) => {
          const alive = traffic.slice(0, n).filter((earlier) => now - earlier.now < ttlMs);
          const shared = longestShared(alive, prompt.tokens);
          const steps = shared < 1_024 ? 0 : 1_024 + Math.floor((shared - 1_024) / 128) * 128;
          expect(cache.serve(prompt, now)).toEqual({ cachedTokens: steps, writtenTokens: null });
        });
      }),
    );
  });

  it.each([
    [1_023, 0],
    [1_024, 1_024],
    [1_151, 1_024],
    [1_152, 1_152],
    [12_033, 12_032],
  ])("counts %d shared tokens as %d", (shared, hit) => {
    const cache = new OpenAiCache();
    cache.serve({ tokens: [...run(0, shared), -1, ...run(0, 200)] }, 0);
    expect(cache.serve({ tokens: [...run(0, shared), -2, ...run(0, 200)] }, 0).cachedTokens).toBe(hit);
  });

  it("does not keep a prompt below its minimum", () => {
    const cache = new OpenAiCache();
    cache.serve({ tokens: run(0, 1_023) }, 0);
    expect(cache.heldTokens).toBe(0);
  });

  it("forgets after five minutes without use unless told otherwise", () => {
    const prompt = { tokens: run(0, 2_000) };
    const [usual, longer] = [new OpenAiCache(), new OpenAiCache({ ttlMs: 10 * 60_000 })];
    for (const cache of [usual, longer]) cache.serve(prompt, 0);
    expect(usual.serve(prompt, 5 * 60_000).cachedTokens).toBe(0);
    expect(longer.serve(prompt, 5 * 60_000).cachedTokens).toBe(1_920);
  });
});
