import { createMem0 } from "@mem0/vercel-ai-provider";
import { aiSdkUses } from "../ai-sdk-uses.js";
import { runProgram } from "../client-program.js";

runProgram({
  client: "Mem0's AI SDK provider",
  packages: ["@mem0/vercel-ai-provider", "ai"],
  api: "Responses",
  identity: "`config.headers`",
  // Its own searches end at memstem, which finds the memories.
  uses: aiSdkUses(({ base, headers }) =>
    createMem0({
      provider: "openai",
      mem0ApiKey: "none",
      apiKey: "the engine's",
      mem0Config: { user_id: "ana", host: base },
      config: { baseURL: `${base}/v1`, apiKey: "the engine's", headers: { ...headers } },
    })("gpt-5-mini"),
  ),
});
