import { createOpenAI } from "@ai-sdk/openai";
import { runMiddleware } from "./ai-sdk-program.js";

runMiddleware("Responses", (engine) => createOpenAI({ baseURL: engine, apiKey: "the engine's" })("gpt-5-mini"));
