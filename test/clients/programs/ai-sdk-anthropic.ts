import { createAnthropic } from "@ai-sdk/anthropic";
import { aiSdkUses } from "../ai-sdk-uses.js";
import { runProgram } from "../client-program.js";

runProgram({
  client: "AI SDK, Anthropic",
  api: "Messages",
  uses: aiSdkUses(({ base, headers }) =>
    createAnthropic({ baseURL: `${base}/v1`, apiKey: "the engine's", headers: { ...headers } })("claude-opus-4-8"),
  ),
});
