import type { MemoryId } from "../../core/index.js";
import type { ScopesFound } from "../api/store.js";
import type { JournalParts } from "./journal-parts.js";
import { memoryHash } from "./keyed-numbers.js";
import { loadScope } from "./scope-loading.js";

/** See `Store.scopesWithMemory`. Of the scopes that may have it, those are loaded: another memory may have its hash. */
export async function findScopesWithMemory(
  parts: JournalParts,
  tenant: string,
  memoryId: MemoryId,
  after: number,
): Promise<ScopesFound> {
  const hash = memoryHash(memoryId, parts.digests);
  const { scopes: candidates, next } = await parts.database.withMemory(tenant, hash, after);
  const scopes: ScopesFound["scopes"][number][] = [];
  for (const { scope } of candidates) {
    const { register } = (await loadScope(parts, scope)).scope;
    if (register.versions.some((version) => version.memoryId === memoryId)) scopes.push(scope);
  }
  return { scopes, next };
}
