import { anthropic } from "./anthropic.js";
import type { EngineAdapter, EngineName } from "./engine-adapter.js";
import { generic } from "./generic.js";
import { llamaCpp } from "./llama-cpp.js";
import { mistral } from "./mistral.js";
import { openAi, openAiBreakpoints } from "./openai.js";
import { sglang } from "./sglang.js";
import { vllm } from "./vllm.js";

export const ENGINES: Readonly<Record<EngineName, EngineAdapter>> = {
  generic,
  mistral,
  vllm,
  sglang,
  llamacpp: llamaCpp,
  openai: openAi,
  "openai-breakpoints": openAiBreakpoints,
  anthropic,
};
