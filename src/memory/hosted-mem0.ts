import type { MemoryId } from "../core/text/ids.js";
import { addFields, filtersOf, type Mem0Search, searchFields } from "./mem0-identity.js";
import { checkedService, isNotFound, jsonCalls } from "./mem0-service.js";
import type { MemorySource } from "./memory-source.js";
import { sharedMem0 } from "./shared-mem0.js";

export interface HostedMem0Options {
  readonly apiKey: string;
  /** Default: `https://api.mem0.ai`. */
  readonly url?: string;
}

const NAME = "mem0-hosted";

/**
 * A search without an agent sees only memories without one ("implicit null scoping"). The platform queues additions: `add` returns no ids, and a
 * search may not see the memory yet. Throws a `TypeError` for invalid settings; no error carries the key.
 * Source: https://docs.mem0.ai/api-reference
 */
export function openHostedMem0(options: HostedMem0Options): MemorySource {
  const { url, apiKey } = checkedService({ ...options, url: options.url ?? "https://api.mem0.ai" });
  if (apiKey === undefined) throw new TypeError("apiKey: must be given");
  const call = jsonCalls(NAME, { url, apiKey }, { authorization: `Token ${apiKey}` });
  const pathOf = (id: MemoryId) => `/v1/memories/${encodeURIComponent(id)}/`;
  return sharedMem0(NAME, {
    search(search, query, top_k, signal) {
      // Else the platform returns superseded versions too.
      const searching = { filters: platformFilters(search), latest_only: true, ...searchFields(search), top_k };
      return call("POST", "/v3/memories/search/", signal, { query, output_format: "v1.1", ...searching });
    },
    get: (id, signal) => call("GET", pathOf(id), signal),
    add: (scope, addition, signal) => call("POST", "/v3/memories/add/", signal, addFields(scope, addition)),
    async delete(id, signal) {
      await call("DELETE", pathOf(id), signal);
      return true;
    },
    async deleteUser(userId, signal) {
      try {
        // Not all memories of a `user_id`: where a missing id means "none", that would leave the agents' memories.
        await call("DELETE", `/v2/entities/user/${encodeURIComponent(userId)}/`, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    },
  });
}

/** The platform takes one field, or one of AND, OR and NOT, at the top of filters with conditions. */
function platformFilters(search: Mem0Search): Record<string, unknown> {
  const ids = filtersOf(search);
  if (search.filters == null) return { ...ids };
  const each = (fields: object) =>
    Object.entries(fields).map(([name, value]: [string, unknown]) => ({ [name]: value }));
  return { AND: [...each(ids), ...each(search.filters)] };
}
