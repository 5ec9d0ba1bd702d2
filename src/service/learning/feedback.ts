/*
 * learning: what an engine's answers teach.
 * Enters: cached tokens, times to first token, evictions and refusals, as engines report them. Leaves: a corrected context index, a fitted
 * cost model, and per model what the engine does not support. Each is bounded, and what is learned of a model expires.
 */

import {
  hadOnlyHead,
  NOTHING_CORRECTED,
  type RequestId,
  type ResidencyModel,
  type Scope,
  type TurnId,
  takeReport,
} from "../../core/index.js";
import type { EngineReport, Store } from "../../store/api/store.js";
import type { Feedback } from "../base/answers.js";
import { NotFoundError } from "../base/errors.js";
import type { WorkingScope } from "../scopes/working-scopes.js";

/**
 * Stores an engine's report on a request, merged with earlier ones, and corrects the scope's context index by the first report that has
 * cached tokens: a repeated report changes nothing. Throws {@link NotFoundError}.
 *
 * @param now milliseconds since the epoch
 */
export function reportIn(
  working: WorkingScope,
  store: Store,
  scope: Scope,
  { id, observation }: { readonly id: RequestId; readonly observation: EngineReport },
  residency: ResidencyModel,
  now: number,
): Feedback {
  const { state } = working;
  const served = store.findServed(scope, id);
  if (served === null) throw new NotFoundError("request_id", "no such request of this user");
  const { plan, evicted, observed } = served;
  const { cachedTokens = null, promptTokens = observed?.promptTokens ?? null } = observation;
  let corrected = NOTHING_CORRECTED;
  if (cachedTokens !== null && observed?.cachedTokens === undefined && !evicted) {
    // A late report must not restore what has expired since.
    residency.expire(state.index, now);
    const report = { cachedTokens, promptTokens };
    const isExact = residency.limits?.kind === "slots";
    const again = hadOnlyHead(served, report) && hadOnlyHeadBefore(store, scope, served.turn);
    corrected = takeReport(state.index, served, report, now, { again, isExact });
  }
  const report = { id, observed: { ...observed, ...observation } };
  working.version = store.commitReport(scope, working.version, state.drain(), report);
  return {
    requestId: id,
    expectedCachedTokens: plan.expectedCachedTokens,
    observedCachedTokens: cachedTokens,
    difference: cachedTokens === null ? null : cachedTokens - plan.expectedCachedTokens,
    corrected,
  };
}

function hadOnlyHeadBefore(store: Store, scope: Scope, turn: TurnId): boolean {
  const before = store.findReportedBefore(scope, turn);
  const { cachedTokens, promptTokens = null } = before?.observed ?? {};
  return before !== null && cachedTokens !== undefined && hadOnlyHead(before, { cachedTokens, promptTokens });
}
