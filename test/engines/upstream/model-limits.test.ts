import { describe, expect, it } from "vitest";
import { ModelLimits, promptTokensWithin } from "../../../src/engines/upstream/model-limits.js";

const context = (contextTokens: number) => ({ contextTokens, promptTokens: null });

describe("a list of models", () => {
  const one = (more: object) => ({ data: [{ id: "m", ...more }, { id: "n" }] });
  const [base, lora] = [
    { id: "base", max_model_len: 4_096 },
    { id: "lora", parent: "base", max_model_len: null },
  ];
  const cpp = (meta: object) => ({ models: [{}], data: [{ id: "/m.gguf", meta }] });
  const router = [16_385, 4_095].map((context_length, at) => ({ id: `a/${at}`, context_length, top_provider: {} }));
  const answered = { contextTokens: null, promptTokens: 200_000 };

  it.each<[string, object, string, object]>([
    ["vLLM", one({ object: "model", root: "m", parent: null, max_model_len: 32_768 }), "m", context(32_768)],
    ["vLLM with an adapter", { data: [base, lora] }, "lora", context(4_096)],
    ["SGLang", { data: [{ id: "m", owned_by: "sglang", max_model_len: 131_072 }] }, "m", context(131_072)],
    ["llama.cpp", cpp({ n_ctx: 8_192, n_ctx_train: 131_072 }), "any", context(8_192)],
    ["an older llama.cpp", { data: [{ id: "/m.gguf", meta: { n_ctx_train: 4_096 } }] }, "any", context(4_096)],
    ["OpenRouter", { data: router }, "a/1", context(4_095)],
    ["Together", one({ context_length: 8_192 }).data, "m", context(8_192)],
    ["Groq", one({ context_window: 131_072 }), "m", context(131_072)],
    ["Mistral", one({ max_context_length: 32_000 }), "m", context(32_000)],
    ["Anthropic", one({ max_input_tokens: 200_000 }), "m", answered],
  ])("of %s says how much a model takes", (_who, list, name, limit) => {
    expect(ModelLimits.read(list)?.of(name)).toEqual(limit);
  });

  it("says nothing of a model that is not on it, or that it says nothing of", () => {
    const limits = ModelLimits.read({ data: [{ id: "m", max_model_len: 1_000 }, { id: "plain" }] });
    expect([limits?.of("other"), limits?.of("plain"), limits?.of("")]).toEqual([null, null, null]);
    expect(ModelLimits.read({ data: [{ id: "gpt", object: "model" }] })?.of("gpt")).toBeNull();
  });

  it("may hold anything", () => {
    const wrong = ["4096", -1, 0, 1.5, 1e12, {}, [], null].map((max_model_len, at) => ({
      id: `m${at}`,
      max_model_len,
    }));
    const limits = ModelLimits.read({ data: [null, 7, "m", [], { id: 3 }, ...wrong, { id: "m", max_model_len: 9 }] });
    expect(wrong.map(({ id }) => limits?.of(id))).toEqual(wrong.map(() => null));
    expect(limits?.of("m")).toEqual(context(9));
    for (const json of [null, 7, "models", {}, { data: "none" }, { data: { id: "m" } }])
      expect(ModelLimits.read(json)).toBeNull();
  });
});

describe("the tokens of a prompt within a context", () => {
  it("leave room for the answer that is asked for, or for an ordinary one", () => {
    expect(promptTokensWithin(context(8_192), 500)).toBe(7_692);
    expect(promptTokensWithin(context(8_192), null)).toBe(7_168);
    expect(promptTokensWithin(context(1_000), null)).toBe(750);
    expect(promptTokensWithin({ contextTokens: null, promptTokens: 272_000 }, 100_000)).toBe(272_000);
    expect(promptTokensWithin({ contextTokens: 8_192, promptTokens: 2_000 }, 500)).toBe(2_000);
  });

  it("are half of it at least, since engines cut long answers", () => {
    expect(promptTokensWithin(context(8_192), 8_192)).toBe(4_096);
    expect(promptTokensWithin(context(8_192), 1e9)).toBe(4_096);
  });
});
