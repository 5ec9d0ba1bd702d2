import { join } from "node:path";
import type { Memory } from "mem0ai/oss";
import { EMBEDDING_DIMENSIONS, sentenceEmbedder } from "../src/memory/embedded-store.js";
import { withoutTelemetry } from "../src/memory/mem0-packages.js";

/** `mem0ai` in this process, with its vectors in `directory` and this OpenAI-compatible model. */
export async function embeddedMem0(directory: string, baseURL: string, model: string): Promise<Memory> {
  // Mem0 reads this when it is loaded.
  withoutTelemetry();
  const { Memory: OpenSource } = await import("mem0ai/oss");
  return new OpenSource({
    vectorStore: {
      provider: "memory",
      config: { dbPath: join(directory, "vectors.db"), dimension: EMBEDDING_DIMENSIONS },
    },
    embedder: { provider: "langchain", config: { model: sentenceEmbedder() } },
    llm: { provider: "openai", config: { apiKey: "none", baseURL, model } },
    historyStore: { provider: "memory", config: {} },
  });
}
