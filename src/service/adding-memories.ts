import type { RetrievedMemory, Scope } from "../core/index.js";
import type { MemorySource, NewMemory } from "../memory/memory-source.js";
import { DeletedMeanwhileError } from "./deletions-meanwhile.js";

/**
 * Adds memories to a source, unless `isDeleted` says that what they belong to was deleted: before it, or while the source was at it (by
 * another process; this one does a user's jobs in turn). Then it takes back what it added and rejects with {@link DeletedMeanwhileError}.
 * Rejects with `MemorySourceError` where the source fails.
 *
 * @param signal ends waiting for the source
 * @param closing ends taking back
 */
export async function addUnlessDeleted(
  source: MemorySource,
  scope: Scope,
  memories: readonly NewMemory[],
  isDeleted: () => boolean,
  { signal, closing }: { readonly signal: AbortSignal; readonly closing: AbortSignal },
): Promise<readonly RetrievedMemory[]> {
  if (isDeleted()) throw new DeletedMeanwhileError();
  const added = await source.add(scope, memories, signal);
  if (!isDeleted()) return added;
  await Promise.all(added.map(({ id }) => source.delete(scope, id, closing)));
  throw new DeletedMeanwhileError();
}
