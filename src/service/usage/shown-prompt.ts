import {
  comparePrompt,
  explain,
  explanationText,
  type PromptBars,
  promptBars,
  type RequestId,
} from "../../core/index.js";
import type { Store } from "../../store/api/store.js";
import { type ExplainedRequest, type ExplainParts, explainInput, sourceWords } from "../records/explain.js";
import type { WorkingScope } from "../scopes/working-scope.js";

/** A prompt as bars beside its nearest earlier one, with its explanation. */
export interface ShownPrompt extends ExplainedRequest {
  readonly bars: PromptBars;
}

/** Shows a request's prompt from stored data; changes nothing. Rejects with `NotFoundError`. `hasText`: whether bars contain their text. */
export async function showIn(
  working: WorkingScope,
  store: Store,
  requestId: RequestId,
  parts: ExplainParts & { readonly hasText: boolean },
): Promise<ShownPrompt> {
  const input = await explainInput(working, store, requestId, parts);
  const { prompt, register, countTokens } = input;
  const compared = comparePrompt(input);
  const memories = (await store.findRequest(working.scope, requestId))?.answer.memories ?? [];
  const carried = new Set(memories.flatMap(({ label, placement }) => (placement === "carried_over" ? [label] : [])));
  const explanation = explain(input, compared);
  const bars = promptBars({ prompt, register, countTokens, carried, hasText: parts.hasText }, compared);
  const words = [...explanationText(explanation), ...(await sourceWords(working, store, requestId))];
  return { explanation, words, bars };
}
