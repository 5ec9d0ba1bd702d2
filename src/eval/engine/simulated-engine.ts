import type { ChatMessage } from "../../core/index.js";
import { BlockHashCache } from "../../simulator/block-hash-cache.js";
import { chatTokenizer, type Encode } from "../../simulator/chat-tokens.js";
import type { EnginePrompt, MeasuredEngine } from "./measured-engine.js";

/** Only an engine's cache, unlimited: what vLLM would find cached. It answers nothing and takes no time. */
export function simulatedEngine(encode: Encode): MeasuredEngine {
  return {
    kind: "simulated",
    family: "generic",
    check: async () => {},
    open: async () => {
      const cache = new BlockHashCache();
      const tokenize = chatTokenizer(encode);
      const serve = ({ messages }: EnginePrompt, goesOn: ChatMessage | null) => {
        const tokens = tokenize(messages);
        const { cachedTokens } = cache.serve({ tokens }, 0);
        // An answer stays in the cache like its prompt.
        if (goesOn !== null) cache.serve({ tokens: tokenize([...messages, goesOn]) }, 0);
        return { promptTokens: tokens.length, cachedTokens };
      };
      return {
        mark: null,
        ask: async (prompt, goesOn) => ({
          ...serve(prompt, goesOn),
          answerTokens: null,
          ttftMs: null,
          answer: null,
        }),
        repeat: (prompt, goesOn) => void serve(prompt, goesOn),
      };
    },
    close: async () => {},
  };
}
