import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { runMiddleware } from "./ai-sdk-program.js";

runMiddleware("chat completions", (engine) =>
  createOpenAICompatible({
    name: "engine",
    baseURL: engine,
    apiKey: "the engine's",
    supportsStructuredOutputs: true,
    includeUsage: true,
  })("any"),
);
