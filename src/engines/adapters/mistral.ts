import type { EngineAdapter } from "./engine-adapter.js";
import { generic } from "./generic.js";

/**
 * Mistral's API, and its models wherever they run: behind a tool's result they take an answer or another result and no user's message, and
 * their chat templates raise there. The API refuses fields that it does not know, so it gets what `generic` does.
 * Source: mistral-common, `protocol/instruct/validator.py`
 */
export const mistral: EngineAdapter = { ...generic, name: "mistral", toolMemories: "in_result" };

/** Names of Mistral's models, with whatever stands before and behind them: `mistralai/Devstral-Small-2507`, `codestral-latest`. */
const MODEL = /(?:^|[^a-z])(?:mistral|ministral|mixtral|devstral|codestral|magistral|pixtral|voxtral)/i;

/** Whether a model is one of Mistral's, by its name. */
export function isMistralModel(model: unknown): boolean {
  return typeof model === "string" && MODEL.test(model.slice(0, 200));
}
