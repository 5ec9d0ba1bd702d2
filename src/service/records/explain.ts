import {
  type EngineModel,
  type Explanation,
  explain,
  explanationText,
  type RequestId,
  type ResidencyModel,
  type Scope,
  type SpokenTurn,
  type TokenCounter,
} from "../../core/index.js";
import { StaleScopeError, type Store } from "../../store/api/store.js";
import { NotFoundError } from "../base/errors.js";
import type { WorkingScope } from "../scopes/working-scopes.js";

/** What the engine is taken to be. */
export interface ExplainingParts {
  readonly engine: EngineModel;
  readonly residency: ResidencyModel;
  readonly countTokens: TokenCounter;
}

/** An explanation, and the same in plain words. */
export interface ExplainedRequest {
  readonly explanation: Explanation;
  readonly words: readonly string[];
}

/** Explains a request from what is stored; changes nothing. Throws {@link NotFoundError}. */
export function explainIn(
  { state: { register } }: WorkingScope,
  store: Store,
  scope: Scope,
  requestId: RequestId,
  { engine, residency, countTokens }: ExplainingParts,
): ExplainedRequest {
  const history = store.findPromptHistory(scope, requestId);
  if (history === null) throw new NotFoundError("request_id", "no such request of this user");
  const { prompt, earlier, isComplete } = history;
  const isKnown = ({ turn }: SpokenTurn) =>
    turn.injection.blocks.every(({ label }) => register.get(label) !== undefined);
  for (const spoken of new Set([prompt, ...earlier].flatMap((composed) => composed.turns))) {
    if (!isKnown(spoken)) throw new StaleScopeError("another process composed since");
  }
  const { limits = { kind: "all" } } = residency;
  const explanation = explain({ requestId, prompt, earlier, isComplete, register, engine, limits, countTokens });
  return { explanation, words: explanationText(explanation) };
}
