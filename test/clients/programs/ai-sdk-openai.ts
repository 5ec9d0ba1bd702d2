import { createOpenAI } from "@ai-sdk/openai";
import { aiSdkUses } from "../ai-sdk-uses.js";
import { runProgram } from "../client-program.js";

runProgram({
  client: "AI SDK, OpenAI",
  api: "Responses",
  uses: aiSdkUses(({ base, headers }) =>
    createOpenAI({ baseURL: `${base}/v1`, apiKey: "the engine's", headers: { ...headers } })("gpt-5-mini"),
  ),
});
