import type { RetrievedMemory } from "../core/blocks/context-block.js";
import type { MemoryId } from "../core/text/ids.js";
import { append } from "../core/text/lists.js";
import { isNotFound, isPathSegment } from "./bounded-json.js";
import { type BoundedMem0Client, loadBoundedMem0Client } from "./bounded-mem0-client.js";
import { LoadingError, loadOnce } from "./load-once.js";
import { currentOf, noneIfMissing } from "./mem0-current.js";
import { filtersOf, isOwnedBy, type Mem0Search, sharedScope, sharedSearch, sharedUserName } from "./mem0-identity.js";
import { readMem0Added, searchMem0 } from "./mem0-results.js";
import { checkedService, checkMemoryText } from "./mem0-service.js";
import { type MemorySource, MemorySourceError } from "./memory-source.js";

/** How to reach Mem0's hosted platform. */
export interface HostedMem0Options {
  readonly apiKey: string;
  /** Default `https://api.mem0.ai`. */
  readonly url?: string;
  /** Least similarity, 0 to 1; absent: the platform's default, 0.1. */
  readonly threshold?: number;
}

const NAME = "mem0-hosted";

/**
 * Memories of Mem0's hosted platform, through Mem0's own client. The platform owns them, so its meaning of a scope applies: a search
 * without an agent sees only memories without one ("implicit null scoping" in its documentation). Adding is queued there: `add` gives
 * back no ids, and a search may not see the memory yet. The package is loaded at the first call. Throws a `TypeError` for settings that
 * cannot work; no error ever carries the key.
 */
export function openHostedMem0(options: HostedMem0Options): MemorySource {
  const { url, apiKey, threshold } = checkedService({ ...options, url: options.url ?? "https://api.mem0.ai" });
  if (apiKey === undefined) throw new TypeError("apiKey: must be given");
  const client = loadOnce(() =>
    loadBoundedMem0Client(NAME, { apiKey, host: url }).catch((error: unknown) => {
      const cause = error instanceof LoadingError ? error.message : "Mem0's client could not be started";
      throw new MemorySourceError(NAME, { kind: "unreachable", cause });
    }),
  );
  const run: BoundedMem0Client["run"] = async (signal, work) => await (await client()).run(signal, work);

  return {
    name: NAME,
    owned: false,
    sourceUserId: (scope) => sharedUserName(NAME, scope),

    async load() {
      await client();
    },

    async search(asked, signal) {
      const search = sharedSearch(NAME, asked);
      const { query, topK } = asked;
      const limits = threshold === undefined ? {} : { threshold };
      const expired = search.showExpired ? { showExpired: true } : {};
      // Else the platform gives versions that it has superseded as if they held.
      const searching = { filters: platformFilters(search), latestOnly: true, ...limits, ...expired };
      const ask = (most: number) => run(signal, (mem0) => mem0.search(query, { ...searching, topK: most }));
      return await searchMem0(NAME, search, topK, ask);
    },

    async current(scope, ids, signal) {
      const get = (id: MemoryId) => run(signal, (mem0): Promise<unknown> => mem0.get(id)).catch(noneIfMissing);
      return await currentOf(ids.filter(isPathSegment), sharedScope(NAME, { ...scope, agentId: null }), get);
    },

    async add(scope, memories, signal) {
      const { userId, agentId } = sharedScope(NAME, scope);
      for (const { text } of memories) checkMemoryText(NAME, text);
      const added: RetrievedMemory[] = [];
      // One request a memory: metadata belongs to a whole request.
      for (const { text, metadata } of memories) {
        const keeping = {
          userId,
          ...(agentId === null ? {} : { agentId }),
          infer: false,
          ...(metadata === undefined ? {} : { metadata: { ...metadata } }),
        };
        const answer: unknown = await run(signal, (mem0) => mem0.add([{ role: "user", content: text }], keeping));
        append(added, readMem0Added(answer, text));
      }
      return added;
    },

    async delete(scope, id, signal) {
      const names = sharedScope(NAME, scope);
      if (!isPathSegment(id)) return false;
      try {
        const memory: unknown = await run(signal, (mem0) => mem0.get(id));
        if (!isOwnedBy(memory, names)) return false;
        await run(signal, (mem0) => mem0.delete(id));
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    },

    async deleteUser(scope, signal) {
      const userId = sharedUserName(NAME, scope);
      try {
        // Not `deleteAll({ userId })`: where an id that is not given means "none", that would leave the agents' memories.
        await run(signal, (mem0) => mem0.deleteUsers({ userId }));
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    },

    async close() {},
  };
}

/** The platform takes one field, or one of AND, OR and NOT, at the top of filters that have conditions. */
function platformFilters(search: Mem0Search): Record<string, unknown> {
  const ids = filtersOf(search);
  if (search.filters === null) return { ...ids };
  const each = (fields: object) =>
    Object.entries(fields).map(([name, value]: [string, unknown]) => ({ [name]: value }));
  return { AND: [...each(ids), ...each(search.filters)] };
}
