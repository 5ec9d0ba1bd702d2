import { describe, expect, it } from "vitest";
import { PRICES, pricedModel, priceOf } from "../../../src/core/cost/prices.js";
import { ENGINE_MODELS } from "../../../src/core/index.js";

const at = (host: string | null, family = "generic") => ({ host, family });

describe("the list of prices", () => {
  it.each([
    ["api.openai.com", "openai", "gpt-5.5", 1],
    ["api.openai.com", "openai", "gpt-5.6-mini", 1.25],
    ["api.openai.com", "generic", "gpt-6", 1.25],
    ["api.openai.com", "generic", null, 1],
    [null, "openai-breakpoints", null, 1.25],
    ["gateway.example", "openai", "gpt-35-turbo", 1],
    ["gateway.example", "openai-breakpoints", "ours", 1.25],
    ["api.anthropic.com", "generic", "claude-opus-5", 1.25],
    ["api.deepseek.com", "generic", "deepseek-v4", null],
  ])("has what a write costs at %s, family %s, model %s: %s", (host, family, model, written) => {
    expect(priceOf(at(host, family), model)?.written).toBe(written);
  });

  it("goes by the host before the family, and knows no other hosts", () => {
    expect(priceOf(at("api.deepseek.com", "openai"), null)?.provider).toBe("DeepSeek");
    expect(priceOf(at("generativelanguage.googleapis.com"), "models/gemini-3.1-pro")?.minimumTokens).toBe(4_096);
    for (const host of [null, "127.0.0.1", "api.openai.com.example", "notapi.openai.com.example"])
      expect(priceOf(at(host), "gpt-5.6")).toBeNull();
  });

  it("has each row once, and of every provider a last one for all models", () => {
    const rows = PRICES.map(({ provider, model }) => `${provider} ${model}`);
    expect(new Set(rows).size).toBe(rows.length);
    for (const provider of new Set(PRICES.map((row) => row.provider)))
      expect(PRICES.findLast((row) => row.provider === provider)?.model).toBeNull();
  });

  it("gives a model of the engine: of time where nobody bills, as the preset where no price is known", () => {
    expect(pricedModel(at(null), "gpt-5.6")).toEqual(ENGINE_MODELS.gpu);
    expect(pricedModel(at("api.mistral.ai"), "mistral-large")).toEqual(ENGINE_MODELS.hosted);
    expect(pricedModel(at("api.openai.com"), "gpt-5.6")).toEqual({
      cost: { kind: "money", uncached: 1, written: 1.25, cached: 0.05 },
      blockTokens: 1,
      minimumPrefixTokens: 1_024,
    });
    const opus = pricedModel(at("api.anthropic.com"), "claude-opus-5");
    expect([opus.minimumPrefixTokens, opus.blockTokens]).toEqual([512, 1]);
  });
});
