import { createAnthropic } from "@ai-sdk/anthropic";
import { runMiddleware } from "./ai-sdk-program.js";

runMiddleware("Messages", (engine) => createAnthropic({ baseURL: engine, apiKey: "the engine's" })("claude-opus-4-8"));
