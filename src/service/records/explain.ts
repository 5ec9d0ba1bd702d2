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
  const explanation = explain(await explainInput(working, store, requestId, parts));
  return { explanation, words: [...explanationText(explanation), ...(await sourceWords(working, store, requestId))] };
}

/** Why a prompt has no memories that were searched for; none where the source answered, or was not asked. */
async function sourceWords(
  { scope }: Pick<WorkingScope, "scope">,
  store: Pick<Store, "findRequest">,
  requestId: RequestId,
): Promise<readonly string[]> {
  const answered = await store.findRequest(scope, requestId);
  const failed = answered?.answer.warnings.filter(({ code }) => code === "memory_source_failed") ?? [];
  return failed.map(({ message }) => `Its memories could not be searched for: ${message}.`);
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
