import { createMem0 } from "@mem0/vercel-ai-provider";
import { runMem0Provider } from "./mem0-provider-program.js";

runMem0Provider("Responses", ({ base, headers, mem0Config }) =>
  createMem0({
    provider: "openai",
    mem0ApiKey: "none",
    apiKey: "the engine's",
    mem0Config,
    config: { baseURL: `${base}/v1`, apiKey: "the engine's", headers: { ...headers } },
  })("gpt-5-mini"),
);
