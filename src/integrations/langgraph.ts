/* LangGraph JS: prompts for its nodes, and its stores as memory sources. Needs `@langchain/core`, not `langchain`. */

export { composeMessages, type LangChainPrompt } from "./langchain-prompt.js";
export {
  type LangGraphStore,
  type StoredItem,
  type StoredMemory,
  type StoreSource,
  type StoreSourceOptions,
  storeSource,
} from "./langchain-store.js";
