import type { ChatMessage } from "../../core/index.js";
import type { EngineName } from "../../engines/adapters/engine-adapter.js";
import { BlockHashCache } from "../../simulator/block-hash-cache.js";
import { chatTokenizer, type Encode } from "../../simulator/chat-tokens.js";
import type { EnginePrompt, MeasuredEngine } from "./measured-engine.js";

/** Prompts as another engine would get them. */
export interface SimulatedPrompts {
  readonly family: EngineName;
  /** The line at the head of an arm's prompts in a conversation; null for none. */
  readonly markOf: (arm: string, conversation: string) => string | null;
}

/** Only an engine's cache, unlimited: what vLLM would find cached. It answers nothing and takes no time. */
export function simulatedEngine(
  encode: Encode,
  { family, markOf }: SimulatedPrompts = { family: "generic", markOf: () => null },
): MeasuredEngine {
  return {
    kind: "simulated",
    losesCache: false,
    family,
    check: async () => null,
    open: async (arm, conversation) => {
      const cache = new BlockHashCache();
      const tokenize = chatTokenizer(encode);
      const serve = ({ messages }: EnginePrompt, goesOn: ChatMessage | null) => {
        const tokens = tokenize(messages);
        const cachedTokens = cache.serve(tokens);
        // An answer stays in the cache like its prompt.
        if (goesOn !== null) cache.serve(tokenize([...messages, goesOn]));
        return { promptTokens: tokens.length, cachedTokens };
      };
      return {
        promptTokens: null,
        chooseDepth: null,
        mark: markOf(arm.id, conversation),
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
