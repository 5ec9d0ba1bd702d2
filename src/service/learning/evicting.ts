import type { NodeId, RequestId, ResidencyModel, Scope, TurnId } from "../../core/index.js";
import type { Store } from "../../store/api/store.js";
import type { WorkingScope } from "../scopes/working-scopes.js";

/** Takes what only these requests of a scope had out of what should be cached. Gives back those that were live until now. */
export function evictIn(
  working: WorkingScope,
  store: Store,
  scope: Scope,
  ids: readonly RequestId[],
  residency: ResidencyModel,
): readonly RequestId[] {
  // Asked again here: another eviction may have named the same requests while this one waited for its turn.
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
 * Takes prompts that were served, and that the store does not call evicted yet, out of what should be cached. A slot's prompt may have been
 * overwritten since by one whose blocks end where its own did: then that one is what is held, and it stays. Of the requests that ended in
 * one place the last ones are held, as many as the index has there.
 */
export function dropServed(
  { state }: WorkingScope,
  store: Store,
  scope: Scope,
  served: readonly { readonly leaf: NodeId; readonly turn: TurnId }[],
  { limits }: Pick<ResidencyModel, "limits">,
): void {
  const isOverwritten = (leaf: NodeId, turn: TurnId) => {
    // Elsewhere nothing is overwritten: as many are held as were served, or none of them.
    if (limits?.kind !== "slots") return false;
    const held = state.index.heldAt(leaf);
    return held > 0 && store.countServedSince(scope, leaf, turn, held) >= held;
  };
  // The first served come first, so that the store counts only what comes after.
  for (const { leaf, turn } of served.toSorted((a, b) => a.turn - b.turn)) {
    if (isOverwritten(leaf, turn)) state.published.evict(turn);
    else state.evict(leaf, turn);
  }
}
