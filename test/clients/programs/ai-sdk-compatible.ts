import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { aiSdkUses } from "../ai-sdk-uses.js";
import { runProgram } from "../client-program.js";

runProgram({
  client: "AI SDK, OpenAI-compatible",
  api: "chat completions",
  uses: aiSdkUses(({ base, headers }) =>
    createOpenAICompatible({
      name: "memprefix",
      baseURL: `${base}/v1`,
      apiKey: "the engine's",
      headers: { ...headers },
      supportsStructuredOutputs: true,
    })("any"),
  ),
});
