import type { NodeId, RequestId, ResidencyModel, TurnId } from "../../core/index.js";
import type { Store } from "../../store/api/store.js";
import { deltaOf, type WorkingScope } from "../scopes/working-scope.js";

/** Evicts requests from a scope's context index: what only they had is no longer expected to hit. Gives those that were live. */
export async function evictIn(
  working: WorkingScope,
  store: Store,
  ids: readonly RequestId[],
  residency: ResidencyModel,
): Promise<readonly RequestId[]> {
  const { scope, state } = working;
  // Read again here: another eviction may have run while this one was queued.
  const live = (await store.findLiveRequests(scope.tenant, ids)).filter(
    (request) => request.scope.userId === scope.userId && request.scope.agentId === scope.agentId,
  );
  await dropServed(working, store, live, residency);
  const names = live.map(({ requestId }) => requestId);
  if (names.length > 0) {
    await working.commit((base) => store.commitEviction(scope, base, deltaOf(state), names));
    working.requests.ended(names);
  }
  return names;
}

/**
 * Evicts served prompts, not yet evicted in the store, from the context index. Where the engine has slots, a later prompt that ends at the
 * same node may have overwritten one: then the later one stays. Of the requests that end at one node the latest are held, as many as the
 * index has there.
 */
export async function dropServed(
  { scope, state }: WorkingScope,
  store: Store,
  served: readonly { readonly leaf: NodeId; readonly turn: TurnId }[],
  { limits }: Pick<ResidencyModel, "limits">,
): Promise<void> {
  const isOverwritten = async (leaf: NodeId, turn: TurnId) => {
    // Without slots nothing is overwritten.
    if (limits?.kind !== "slots") return false;
    const held = state.index.heldAt(leaf);
    return held > 0 && (await store.countServedSince(scope, leaf, turn, held)) >= held;
  };
  // Oldest first: the store counts later ones only.
  for (const { leaf, turn } of served.toSorted((a, b) => a.turn - b.turn)) {
    if (await isOverwritten(leaf, turn)) state.published.evict(turn);
    else state.evict(leaf, turn);
  }
}

/**
 * Withdraws a request whose prompt the engine refused: no hit is expected from it, its conversation resumes from the turn before, and its id
 * is free again. Labels that its memories got stay.
 */
export async function withdrawIn(
  working: WorkingScope,
  store: Store,
  id: RequestId,
  residency: ResidencyModel,
): Promise<void> {
  const { scope, state } = working;
  const served = await store.findServed(scope, id);
  if (served === null) return;
  if (!served.evicted) await dropServed(working, store, [served], residency);
  // Loaded conversations still hold the turn.
  state.unloadConversations();
  await working.commit((base) => store.commitWithdrawal(scope, base, deltaOf(state), served.turn));
  working.requests.ended([id]);
}
