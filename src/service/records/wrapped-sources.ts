import type { MemoryId } from "../../core/index.js";
import { type MemorySource, MemorySourceError, wrappedSource } from "../../memory/memory-source.js";
import type { PendingSourceDeletions, Store, User } from "../../store/store.js";
import type { DegradedParts, PartName } from "../base/memprefix-observer.js";

/** Statuses with which a service refuses only one request. */
const OF_REQUEST: ReadonlySet<number> = new Set([400, 404, 405, 409, 413, 414, 422]);

/** Reports a source's failures in searches and changes. */
export function watchedSource(source: MemorySource, parts: DegradedParts): MemorySource {
  return wrappedSource(source, async ({ name }, signal, make) => {
    // Runs during a search, which reports failures: an unknown memory is neither a failure nor a success.
    if (name === "current") return make(signal);
    const isRead = name === "search" || name === "list";
    const part = isRead ? "memory_search" : "memory_writes";
    try {
      const result = await make(signal);
      parts.worked(part);
      return result;
    } catch (error) {
      if (error instanceof MemorySourceError) report(parts, part, error);
      throw error;
    }
  });
}

function report(parts: DegradedParts, part: PartName, { failure, message, unquoted }: MemorySourceError): void {
  if (failure.kind === "aborted") return;
  const isOfRequest = failure.kind === "unsupported" || (failure.kind === "refused" && OF_REQUEST.has(failure.status));
  if (isOfRequest) parts.refused(part, message);
  else parts.failed(part, unquoted, message);
}

type Ledger = Pick<Store, "pendingInSource" | "deletedFromSource">;

/** Finishes a user's pending deletions, left by a process that was killed, before any other call. An external source is returned unmodified. */
export function finishingDeletions(source: MemorySource, store: Ledger): MemorySource {
  if (!source.owned) return source;
  return wrappedSource(source, async ({ name, scope, id }, signal, make) => {
    const isDeletion = name === "delete" || name === "deleteUser";
    if (!isDeletion) await finishDeletions(source, store, scope, signal);
    const result = await make(signal);
    if (!isDeletion) return result;
    const done = namesOf(await store.pendingInSource(scope));
    await settle(store, scope, name === "deleteUser" ? done : done.filter((pending) => pending === id));
    return result;
  });
}

/** Safe in several processes at once: nothing is added while a deletion is pending, so everything listed was there before it. */
async function finishDeletions(source: MemorySource, store: Ledger, user: User, signal: AbortSignal): Promise<void> {
  const pending = await store.pendingInSource(user);
  if (pending === null) return;
  if (pending.everything && source.list === undefined) throw new Error("a source of memprefix's own has to list");
  const listed = pending.everything ? ((await source.list?.(user, signal)) ?? []) : [];
  const still = await store.pendingInSource(user);
  if (still === null) return;
  const { memoryIds } = still;
  // If the user was deleted since, nothing was listed for that: it stays pending.
  const everything = pending.everything && still.everything;
  const ids = everything ? [...memoryIds, ...listed.map(({ id }) => id)] : memoryIds;
  const scope = { ...user, agentId: null };
  await Promise.all(ids.map((id) => source.delete(scope, id, signal)));
  await settle(store, user, namesOf({ memoryIds, everything }));
}

async function settle(store: Ledger, user: User, names: readonly (MemoryId | null)[]): Promise<void> {
  for (const name of names) await store.deletedFromSource(user, name);
}

/** In the form of `Store.deletedFromSource`. */
function namesOf(pending: PendingSourceDeletions | null): readonly (MemoryId | null)[] {
  return pending === null ? [] : [...pending.memoryIds, ...(pending.everything ? [null] : [])];
}
