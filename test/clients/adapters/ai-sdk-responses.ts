import { createOpenAI } from "@ai-sdk/openai";
import { runMiddleware } from "./ai-sdk-program.js";

runMiddleware({ client: "AI SDK's middleware", packages: ["ai", "@ai-sdk/openai"], api: "Responses" }, (engine) =>
  createOpenAI({ baseURL: engine, apiKey: "the engine's" })("gpt-5-mini"),
);
