import type { EngineAdapter } from "./engine-adapter.js";
import { generic } from "./generic.js";
import { cacheKey } from "./openai.js";

/**
 * Mistral's API, and its models on any engine. Both reject a user message after a tool result; the API also rejects unknown body fields.
 * Sources: mistral-common, `protocol/instruct/validator.py`; https://docs.mistral.ai/studio-api/conversations/advanced/prompt-caching
 */
export const mistral: EngineAdapter = {
  ...generic,
  name: "mistral",
  inResult: true,
  emit: (prompt) => ({ ...generic.emit(prompt), fields: cacheKey(prompt.scopeKey) }),
};

/** Matches anywhere in a name: `mistralai/Devstral-Small-2507`, `codestral-latest`. */
const MODEL = /(?:^|[^a-z])(?:mistral|ministral|mixtral|devstral|codestral|magistral|pixtral|voxtral)/i;

export function isMistralModel(model: unknown): boolean {
  return typeof model === "string" && MODEL.test(model.slice(0, 200));
}
