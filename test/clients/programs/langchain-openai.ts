import { runProgram } from "../client-program.js";
import { langchainUses } from "../langchain-uses.js";

runProgram({
  client: "LangChain, OpenAI",
  api: "chat completions",
  uses: langchainUses("gpt-5-mini"),
});
