import { runProgram } from "../client-program.js";
import { langchainUses } from "../langchain-uses.js";

runProgram({
  client: "LangChain, OpenAI's newer models",
  api: "Responses",
  uses: langchainUses("gpt-5.2-pro"),
});
