import type { RequestId, Scope } from "../core/index.js";
import type { Store } from "../store/store.js";
import type { WorkingScope } from "./working-scopes.js";

/** Takes what only these requests of a scope had out of what should be cached. Gives back those that were live until now. */
export function evictIn(
  working: WorkingScope,
  store: Store,
  scope: Scope,
  ids: readonly RequestId[],
): readonly RequestId[] {
  // Asked again here: another eviction may have named the same requests while this one waited for its turn.
  const live = store
    .findLiveRequests(scope.tenant, ids)
    .filter((request) => request.scope.userId === scope.userId && request.scope.agentId === scope.agentId);
  for (const { leaf, turn } of live) working.state.evict(leaf, turn);
  const names = live.map(({ requestId }) => requestId);
  if (names.length > 0) {
    working.version = store.commitEviction(scope, working.version, working.state.drain(), names);
  }
  return names;
}
