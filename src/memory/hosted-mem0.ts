import { isNotFound } from "./bounded-json.js";
import { type BoundedMem0Client, loadBoundedMem0Client } from "./bounded-mem0-client.js";
import { LoadingError, loadOnce } from "./load-once.js";
import { filtersOf, type Mem0Search, searchOptions } from "./mem0-identity.js";
import { checkedService } from "./mem0-service.js";
import { type MemorySource, MemorySourceError } from "./memory-source.js";
import { sharedMem0 } from "./shared-mem0.js";

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

  const limits = threshold === undefined ? {} : { threshold };
  return sharedMem0(NAME, {
    async load() {
      await client();
    },
    search(search, query, topK, signal) {
      // Else the platform gives versions that it has superseded as if they held.
      const searching = { filters: platformFilters(search), latestOnly: true, ...limits, ...searchOptions(search) };
      return run(signal, (mem0) => mem0.search(query, { ...searching, topK }));
    },
    get: (id, signal) => run(signal, (mem0): Promise<unknown> => mem0.get(id)),
    add({ userId, agentId }, { text, metadata }, signal) {
      const keeping = {
        userId,
        ...(agentId === null ? {} : { agentId }),
        infer: false,
        ...(metadata === undefined ? {} : { metadata: { ...metadata } }),
      };
      return run(signal, (mem0): Promise<unknown> => mem0.add([{ role: "user", content: text }], keeping));
    },
    async delete(id, signal) {
      await run(signal, (mem0) => mem0.delete(id));
      return true;
    },
    async deleteUser(userId, signal) {
      try {
        // Not `deleteAll({ userId })`: where an id that is not given means "none", that would leave the agents' memories.
        await run(signal, (mem0) => mem0.deleteUsers({ userId }));
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    },
  });
}

/** The platform takes one field, or one of AND, OR and NOT, at the top of filters that have conditions. */
function platformFilters(search: Mem0Search): Record<string, unknown> {
  const ids = filtersOf(search);
  if (search.filters === null) return { ...ids };
  const each = (fields: object) =>
    Object.entries(fields).map(([name, value]: [string, unknown]) => ({ [name]: value }));
  return { AND: [...each(ids), ...each(search.filters)] };
}
