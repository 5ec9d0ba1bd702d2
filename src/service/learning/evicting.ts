import type { NodeId, RequestId, ResidencyModel, Scope, TurnId } from "../../core/index.js";
import type { Store } from "../../store/api/store.js";
import type { WorkingScope } from "../scopes/working-scopes.js";

/** Evicts requests from a scope's context index: what only they had is no longer expected to hit. Gives those that were live. */
export function evictIn(
  working: WorkingScope,
  store: Store,
  scope: Scope,
  ids: readonly RequestId[],
  residency: ResidencyModel,
): readonly RequestId[] {
  // Read again here: another eviction may have run while this one was queued.
  const live = store
    .findLiveRequests(scope.tenant, ids)
    .filter((request) => request.scope.userId === scope.userId && request.scope.agentId === scope.agentId);
  dropServed(working, store, scope, live, residency);
  const names = live.map(({ requestId }) => requestId);
  if (names.length > 0) {
    working.version = store.commitEviction(scope, working.version, working.state.drain(), names);
  }
  return names;
}

/**
 * Evicts served prompts, not yet evicted in the store, from the context index. Where the engine has slots, a later prompt that ends at the
 * same node may have overwritten one: then the later one stays. Of the requests that end at one node the latest are held, as many as the
 * index has there.
 */
export function dropServed(
  { state }: WorkingScope,
  store: Store,
  scope: Scope,
  served: readonly { readonly leaf: NodeId; readonly turn: TurnId }[],
  { limits }: Pick<ResidencyModel, "limits">,
): void {
  const isOverwritten = (leaf: NodeId, turn: TurnId) => {
    // Without slots nothing is overwritten.
    if (limits?.kind !== "slots") return false;
    const held = state.index.heldAt(leaf);
    return held > 0 && store.countServedSince(scope, leaf, turn, held) >= held;
  };
  // Oldest first: the store counts later ones only.
  for (const { leaf, turn } of served.toSorted((a, b) => a.turn - b.turn)) {
    if (isOverwritten(leaf, turn)) state.published.evict(turn);
    else state.evict(leaf, turn);
  }
}

/**
 * Withdraws a request whose prompt the engine refused: no hit is expected from it, its conversation resumes from the turn before, and its id
 * is free again. Labels that its memories got stay.
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
  // Loaded conversations still hold the turn.
  working.state.unloadConversations();
  working.version = store.commitWithdrawal(scope, working.version, working.state.drain(), served.turn);
}
