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
import type { EngineReport, ServedRequest, Store } from "../../store/api/store.js";
import type { Feedback } from "../base/answers.js";
import { deltaOf, type WorkingScope } from "../scopes/working-scope.js";

/**
 * Stores an engine's report on a request, merged with earlier ones, and corrects the scope's context index by the first report that has
 * cached tokens: a repeated report changes nothing. Gives the request as it was before; null where there is none.
 *
 * @param now milliseconds since the epoch
 */
export async function reportIn(
  working: WorkingScope,
  store: Store,
  { id, observation }: { readonly id: RequestId; readonly observation: EngineReport },
  residency: ResidencyModel,
  now: number,
): Promise<{ readonly feedback: Feedback; readonly before: ServedRequest } | null> {
  const { scope, state } = working;
  const served = await store.findServed(scope, id);
  if (served === null) return null;
  const { plan, evicted, observed } = served;
  const { cachedTokens = null, promptTokens = observed?.promptTokens ?? null } = observation;
  let corrected = NOTHING_CORRECTED;
  if (cachedTokens !== null && observed?.cachedTokens === undefined && !evicted) {
    // A late report must not restore what has expired since.
    residency.expire(state.index, now);
    const report = { cachedTokens, promptTokens };
    const isExact = residency.limits?.kind === "slots";
    const again = hadOnlyHead(served, report) && (await hadOnlyHeadBefore(store, scope, served.turn));
    corrected = takeReport(state.index, served, report, now, { again, isExact });
  }
  const report = { id, observed: { ...observed, ...observation } };
  await working.commit((base) => store.commitReport(scope, base, deltaOf(state), report));
  working.requests.ended([id]);
  // In the engine's tokens, where it says how many of them the prompt has.
  const scale = promptTokens === null || plan.totalTokens === 0 ? 1 : promptTokens / plan.totalTokens;
  const expectedCachedTokens = Math.round(plan.expectedCachedTokens * scale);
  const difference = cachedTokens === null ? null : cachedTokens - expectedCachedTokens;
  return {
    feedback: { requestId: id, expectedCachedTokens, observedCachedTokens: cachedTokens, difference, corrected },
    before: served,
  };
}

async function hadOnlyHeadBefore(store: Store, scope: Scope, turn: TurnId): Promise<boolean> {
  const before = await store.findReportedBefore(scope, turn);
  const { cachedTokens, promptTokens = null } = before?.observed ?? {};
  return before !== null && cachedTokens !== undefined && hadOnlyHead(before, { cachedTokens, promptTokens });
}
