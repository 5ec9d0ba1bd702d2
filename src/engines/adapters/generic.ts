import { reported } from "../../apis/api/usage.js";
import { readMessagesUsage } from "../../apis/messages/answer.js";
import { type EngineAdapter, requestIdHeader } from "./engine-adapter.js";
import { readLlamaCppUsage } from "./llama-cpp.js";

/** DeepSeek, Gemini's endpoint, Ollama, LM Studio, gateways. Some reject unknown body fields, so only a header is added. */
export const generic: EngineAdapter = {
  name: "generic",
  emit: ({ requestId, messages }) => ({ messages, fields: {}, headers: requestIdHeader(requestId) }),
  readUsage: (answer) => {
    // Servers with Anthropic's usage: its `input_tokens` exclude cached tokens, OpenAI's include them.
    const isAnthropics = reported(answer, "usage", "cache_read_input_tokens") !== undefined;
    const hasPrompt = reported(answer, "usage", "prompt_tokens") !== undefined;
    return isAnthropics && !hasPrompt ? readMessagesUsage(answer) : readLlamaCppUsage(answer);
  },
};
