import { SimulatedCache } from "../../core/cache/simulated-cache.js";
import type { ChatMessage } from "../../core/index.js";
import { chatTokenizer, type Encode } from "../base/chat-tokens.js";
import type { EnginePrompt, MeasuredEngine } from "./measured-engine.js";

/** An unlimited prefix cache: reports what vLLM would find cached. Gives no answers and takes no time. */
export function simulatedEngine(encode: Encode): MeasuredEngine {
  return {
    kind: "simulated",
    losesCache: false,
    family: "generic",
    check: async () => null,
    open: async () => {
      const cache = new SimulatedCache("blocks");
      const tokenize = chatTokenizer(encode);
      const serve = ({ messages }: EnginePrompt, goesOn: ChatMessage | null) => {
        const tokens = tokenize(messages);
        const cachedTokens = cache.serve(tokens);
        // Engines cache an answer like its prompt.
        if (goesOn !== null) cache.serve(tokenize([...messages, goesOn]));
        return { promptTokens: tokens.length, cachedTokens };
      };
      return {
        promptTokens: null,
        chooseDepth: null,
        mark: null,
        ask: async (prompt, { goesOn }) => ({
          ...serve(prompt, goesOn),
          answerTokens: null,
          ttftMs: null,
          totalMs: null,
          answer: null,
        }),
        repeat: (prompt, goesOn) => void serve(prompt, goesOn),
      };
    },
  };
}
