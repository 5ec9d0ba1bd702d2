import type { RequestId, ResidencyModel, Scope } from "../../core/index.js";
import type { Store } from "../../store/api/store.js";
import { dropServed } from "../learning/evicting.js";
import type { WorkingScope } from "../scopes/working-scopes.js";

/**
 * Takes a request back whose prompt its engine refused: nothing is expected to hit on its account, its conversation goes on from the turn
 * before, and its id is free. What it was given as memories keeps its labels.
 */
export function withdrawIn(
  working: WorkingScope,
  store: Store,
  scope: Scope,
  id: RequestId,
  residency: ResidencyModel,
): void {
  const served = store.findServed(scope, id);
  if (served === null) return;
  if (!served.evicted) dropServed(working, store, scope, [served], residency);
  // The turn is in the conversation that is loaded.
  working.state.unloadConversations();
  working.version = store.commitWithdrawal(scope, working.version, working.state.drain(), served.turn);
}
