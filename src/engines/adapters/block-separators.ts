import { blockBounds, type ChatMessage } from "../../core/index.js";
import type { EngineAdapter } from "./engine-adapter.js";

/**
 * An engine behind which LMCache blends caches: it keeps what stands between two separators and uses it again wherever it stands, not
 * only at the front. So every block of memories gets the separator before it, and the last one behind it too, in the prompt's text. Take
 * a special token of the model's: what `blend_special_str` is by default (` # # `) joins with its neighbours into other tokens.
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
