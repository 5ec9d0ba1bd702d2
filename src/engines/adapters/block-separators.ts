import { blockBounds, type ChatMessage } from "../../core/index.js";
import type { EngineAdapter } from "./engine-adapter.js";

/**
 * For an engine whose LMCache blends KV caches: LMCache reuses the text between two separators wherever it stands, not only in a prefix. So
 * every block of memories gets the separator before it, and the last one behind it too. Use a special token of the model: the default of
 * `blend_special_str` (` # # `) is merged with its neighbours into other tokens.
 * Source: `blend_special_str` in LMCache's `lmcache/v1/config.py`, and its use in `lmcache/v1/token_database.py`.
 */
export function withBlockSeparators(adapter: EngineAdapter, separator: string): EngineAdapter {
  return {
    ...adapter,
    emit: (prompt) =>
      adapter.emit({ ...prompt, messages: prompt.messages.map((message) => separated(message, separator)) }),
  };
}

function separated(message: ChatMessage, separator: string): ChatMessage {
  const { content } = message;
  if (typeof content === "string") {
    const text = separatedText(content, separator);
    return text === content ? message : { ...message, content: text };
  }
  const [first, ...others] = content ?? [];
  if (first?.type !== "text" || typeof first["text"] !== "string") return message;
  const text = separatedText(first["text"], separator);
  return text === first["text"] ? message : { ...message, content: [{ ...first, text }, ...others] };
}

function separatedText(text: string, separator: string): string {
  const cuts = [0, ...blockBounds(text)];
  return cuts.map((at, n) => text.slice(at, cuts[n + 1])).join(separator);
}
