import type { ChatMessage } from "../../core/index.js";
import type { JsonObject } from "../../core/text/json.js";
import { forShortAnswer } from "../api/api.js";

export function withPrompt(body: JsonObject, prompt: readonly ChatMessage[]): JsonObject {
  return { ...body, messages: prompt };
}

export function warmUp(body: JsonObject, prefix: readonly ChatMessage[]): JsonObject {
  const { max_tokens: _most, ...same } = forShortAnswer(body);
  const most = "max_completion_tokens" in body ? "max_completion_tokens" : "max_tokens";
  return { ...same, messages: prefix, [most]: 1 };
}
