import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { EngineName } from "../../../src/engines/adapters/engine-adapter.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { streamFixture, usageFixture } from "../upstream/fixture.js";

/** Which engines answer so. */
const READERS: Readonly<Record<string, readonly EngineName[]>> = {
  "openai-cached": ["openai", "openai-breakpoints", "generic"],
  "openai-breakpoints-written": ["openai-breakpoints", "generic"],
  "openai-last-chunk": ["openai", "openai-breakpoints", "generic"],
  "vllm-details": ["vllm", "generic"],
  "vllm-without-details": ["vllm", "generic"],
  "sglang-cache-report": ["sglang", "generic"],
  "llama-cpp-timings": ["llamacpp", "generic"],
  "llama-cpp-usage": ["llamacpp", "generic"],
  deepseek: ["generic"],
  "lm-studio": ["generic"],
  "anthropic-message": ["anthropic", "generic"],
  "anthropic-uncached": ["anthropic", "generic"],
};
const cases = Object.entries(READERS).flatMap(([name, engines]) => engines.map((engine) => [name, engine] as const));

describe("usage as it is documented", () => {
  it.each(cases)("%s is read by %s, the raw kept beside it", (name, engine) => {
    const { answer, usage } = usageFixture(name);
    const { raw, ...counts } = ENGINES[engine].readUsage(answer);
    expect(counts).toEqual(usage);
    expect(raw).not.toBeNull();
  });

  it("has a fixture for each, with the page it is from", () => {
    const files = readdirSync(new URL("./fixtures", import.meta.url)).map((file) => file.replace(/\.json$/, ""));
    const streams = files.filter((file) => file.startsWith("anthropic-stream"));
    expect(files.filter((file) => !streams.includes(file)).sort()).toEqual(Object.keys(READERS).sort());
    for (const file of streams) expect(streamFixture(file).source).toMatch(/^https:/);
    for (const file of Object.keys(READERS)) expect(usageFixture(file).source).toMatch(/^https:|\.py|openai-node/);
  });

  it("does not believe more cached tokens than the prompt has", () => {
    const usage = { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 11 } };
    expect(ENGINES.openai.readUsage({ usage })).toMatchObject({ promptTokens: 10, cachedTokens: null, raw: usage });
  });
});
