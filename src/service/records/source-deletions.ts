import type { MemoryId, Scope } from "../../core/index.js";
import type { MemorySource } from "../../memory/memory-source.js";
import type { Store } from "../../store/api/store.js";
import { whileBusy } from "../scopes/while-busy.js";

type User = Pick<Scope, "tenant" | "userId">;
type Ledger = Pick<Store, "pendingInSource" | "deletedFromSource">;

/**
 * A source of memstem's own that finishes what was deleted before it does anything else for that user: a process that was killed in the
 * middle of a deletion, or is still at it, has left the memories there. Sources that others own are given back as they are.
 */
export function finishingDeletions(source: MemorySource, store: Ledger): MemorySource {
  if (!source.owned) return source;
  const finish = (user: User, signal: AbortSignal) => finishDeletions(source, store, user, signal);
  return {
    name: source.name,
    owned: source.owned,
    ...(source.load && { load: source.load.bind(source) }),
    async search(query, signal) {
      await finish(query.scope, signal);
      return source.search(query, signal);
    },
    async add(scope, memories, signal) {
      await finish(scope, signal);
      return source.add(scope, memories, signal);
    },
    async delete(scope, id, signal) {
      const isDeleted = await source.delete(scope, id, signal);
      if (store.pendingInSource(scope.tenant, scope.userId)?.memoryIds.includes(id)) await settle(store, scope, [id]);
      return isDeleted;
    },
    async deleteUser(user, signal) {
      await source.deleteUser(user, signal);
      await settle(store, user, namesOf(store.pendingInSource(user.tenant, user.userId)));
    },
    ...(source.list === undefined
      ? {}
      : {
          async list(user: User, signal: AbortSignal) {
            await finish(user, signal);
            return (await source.list?.(user, signal)) ?? [];
          },
        }),
    close: () => source.close(),
  };
}

/**
 * Deletes from the source what is pending there for a user. Safe beside another process that is at the same: what is listed while the
 * deletion is pending was there before it, because nothing is added until it is done.
 */
async function finishDeletions(source: MemorySource, store: Ledger, user: User, signal: AbortSignal): Promise<void> {
  const { tenant, userId } = user;
  const pending = store.pendingInSource(tenant, userId);
  if (pending === null) return;
  if (pending.everything && source.list === undefined) throw new Error("a source of memstem's own has to list");
  const listed = pending.everything ? ((await source.list?.(user, signal)) ?? []) : [];
  const still = store.pendingInSource(tenant, userId);
  const ids = [...(still?.memoryIds ?? []), ...(still?.everything ? listed.map(({ id }) => id) : [])];
  const scope = { ...user, agentId: null };
  await Promise.all(ids.map((id) => source.delete(scope, id, signal)));
  await settle(store, user, namesOf(still));
}

/** The source has deleted these. */
async function settle(store: Ledger, { tenant, userId }: User, names: readonly (MemoryId | null)[]): Promise<void> {
  for (const name of names) await whileBusy(() => store.deletedFromSource(tenant, userId, name));
}

/** As `Store.deletedFromSource` takes them. */
function namesOf(pending: ReturnType<Ledger["pendingInSource"]>): readonly (MemoryId | null)[] {
  return pending === null ? [] : [...pending.memoryIds, ...(pending.everything ? [null] : [])];
}
