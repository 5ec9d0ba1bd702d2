/* LangGraph JS: prompts for its nodes. Needs `@langchain/core`, not `langchain`. */

export { composeMessages, type LangChainPrompt } from "./langchain-prompt.js";
