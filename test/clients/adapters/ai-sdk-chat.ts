import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { runMiddleware } from "./ai-sdk-program.js";

const ABOUT = { client: "AI SDK's middleware", packages: ["ai", "@ai-sdk/openai-compatible"] };

runMiddleware({ ...ABOUT, api: "chat completions" }, (engine) =>
  createOpenAICompatible({
    name: "engine",
    baseURL: engine,
    apiKey: "the engine's",
    supportsStructuredOutputs: true,
    includeUsage: true,
  })("any"),
);
