import { setImmediate } from "node:timers/promises";
import type { UserId } from "../../core/index.js";
import type { KeptMemory, MemorySource } from "../../memory/memory-source.js";
import type { ExportedUser, Store } from "../../store/api/store.js";

/** Everything that is held on a user. */
export interface UserExport extends ExportedUser {
  readonly userId: UserId;
  /** Null: no source is configured. */
  readonly source: {
    readonly name: string;
    /** Null: another system owns them, and says what it holds. */
    readonly memories: readonly KeptMemory[] | null;
  } | null;
}

/** Gathers what the store and a source of memstem's own keep of a user. Rejects with `MemorySourceError` where that source fails. */
export async function exportUser(
  store: Store,
  source: MemorySource | null,
  tenant: string,
  userId: UserId,
  signal: AbortSignal,
): Promise<UserExport> {
  const stored = await store.exportUser(tenant, userId, () => setImmediate());
  if (source === null) return { userId, ...stored, source: null };
  const memories = (source.owned ? await source.list?.({ tenant, userId }, signal) : null) ?? null;
  return { userId, ...stored, source: { name: source.name, memories } };
}
