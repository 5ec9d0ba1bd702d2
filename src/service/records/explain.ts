import {
  comparePrompt,
  type EngineModel,
  type ExplainInput,
  type Explanation,
  explain,
  explanationText,
  type PromptBars,
  promptBars,
  type RequestId,
  type ResidencyModel,
  type SpokenTurn,
  type TokenCounter,
} from "../../core/index.js";
import { StaleScopeError, type Store } from "../../store/api/store.js";
import { NotFoundError } from "../base/errors.js";
import type { WorkingScope } from "../scopes/working-scopes.js";

/** The engine, as the explanation assumes it. */
export interface ExplainParts {
  readonly engine: EngineModel;
  readonly residency: ResidencyModel;
  readonly countTokens: TokenCounter;
}

/** An explanation, and the same in plain words. */
export interface ExplainedRequest {
  readonly explanation: Explanation;
  readonly words: readonly string[];
}

/** Explains a request from stored data; changes nothing. Rejects with {@link NotFoundError}. */
export async function explainIn(
  working: WorkingScope,
  store: Store,
  requestId: RequestId,
  parts: ExplainParts,
): Promise<ExplainedRequest> {
  const { explanation, words } = await explained(working, store, requestId, parts);
  return { explanation, words };
}

async function explained(working: WorkingScope, store: Store, requestId: RequestId, parts: ExplainParts) {
  const input = await explainInput(working, store, requestId, parts);
  const compared = comparePrompt(input);
  const explanation = explain(input, compared);
  const { memories = [], warnings = [] } = (await store.findRequest(working.scope, requestId))?.answer ?? {};
  const failed = warnings.filter(({ code }) => code === "memory_source_failed");
  const whyNone = failed.map(({ message }) => `Its memories could not be searched for: ${message}.`);
  return { input, compared, memories, explanation, words: [...explanationText(explanation), ...whyNone] };
}

/** A request's prompt with the earlier ones to compare it with. Rejects with {@link NotFoundError}. */
async function explainInput(
  { scope, state: { register } }: WorkingScope,
  store: Store,
  requestId: RequestId,
  { engine, residency, countTokens }: ExplainParts,
): Promise<ExplainInput> {
  const history = await store.findPromptHistory(scope, requestId);
  if (history === null) throw new NotFoundError("request_id", "no such request of this user");
  const { prompt, earlier, isComplete } = history;
  const isKnown = ({ turn }: SpokenTurn) =>
    turn.injection.blocks.every(({ label }) => register.get(label) !== undefined);
  for (const spoken of new Set([prompt, ...earlier].flatMap((composed) => composed.turns))) {
    if (!isKnown(spoken)) throw new StaleScopeError("another process composed since");
  }
  const { limits = { kind: "all" } } = residency;
  return { requestId, prompt, earlier, isComplete, register, engine, limits, countTokens };
}

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
  const { input, compared, memories, explanation, words } = await explained(working, store, requestId, parts);
  const { prompt, register, countTokens } = input;
  const carried = new Set(memories.flatMap(({ label, placement }) => (placement === "carried_over" ? [label] : [])));
  const bars = promptBars({ prompt, register, countTokens, carried, hasText: parts.hasText }, compared);
  return { explanation, words, bars };
}
