import { describe, expect, it } from "vitest";
import { ENGINE_NAMES, type EngineName } from "../../../src/engines/adapters/engine-adapter.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { describeEngineAdapter, type MarkLimits } from "./engine-adapter.suite.js";
import { promptOf } from "./prompts.js";

const MARKS: Partial<Record<EngineName, MarkLimits>> = {
  anthropic: { field: "cache_control", max: 4 },
  "openai-breakpoints": { field: "prompt_cache_breakpoint", max: 4 },
};

for (const name of ENGINE_NAMES) describeEngineAdapter(ENGINES[name], MARKS[name] ?? null);

describe("Mistral's adapter", () => {
  it("names a user's prompts by a key, and nobody's by none", () => {
    const prompt = promptOf([{ role: "user", content: "Hello?" }]);
    expect(ENGINES.mistral.emit(prompt).fields).toEqual({ prompt_cache_key: prompt.scopeKey });
    expect(ENGINES.mistral.emit({ ...prompt, scopeKey: null }).fields).toEqual({});
  });
});

describe("the engines", () => {
  it("are all there, each under its own name", () => {
    expect(Object.keys(ENGINES).sort()).toEqual([...ENGINE_NAMES].sort());
    for (const name of ENGINE_NAMES) expect(ENGINES[name].name).toBe(name);
  });
});
