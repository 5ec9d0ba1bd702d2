import { runProgram } from "../client-program.js";
import { langchainUses } from "../langchain-uses.js";

runProgram({
  client: "LangChain, OpenAI's newer models",
  packages: ["@langchain/core", "@langchain/openai"],
  api: "Responses",
  identity: "`configuration.defaultHeaders`",
  uses: langchainUses("gpt-5.2-pro"),
});
