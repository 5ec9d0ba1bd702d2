import { runProgram } from "../client-program.js";
import { langchainUses } from "../langchain-uses.js";

runProgram({
  client: "LangChain, OpenAI",
  packages: ["@langchain/core", "@langchain/openai"],
  api: "chat completions",
  identity: "`configuration.defaultHeaders`",
  uses: langchainUses("gpt-5-mini"),
});
