import type { MemoryId } from "../core/text/ids.js";
import { addFields, searchFields, searchFilters } from "./mem0-identity.js";
import { checkedService, jsonCalls } from "./mem0-service.js";
import { type MemorySource, MemorySourceError } from "./memory-source.js";
import { sharedMem0 } from "./shared-mem0.js";

export interface RestMem0Options {
  /** Its root: `http://mem0:8000`. */
  readonly url: string;
  /** Sent as `X-API-Key`; absent if the server needs none. */
  readonly apiKey?: string;
}

const NAME = "mem0-rest";

/** Without an agent, a search sees all of the user's memories, whatever their agent. Throws a `TypeError` for invalid settings. */
export function openRestMem0(options: RestMem0Options): MemorySource {
  const service = checkedService(options);
  const { apiKey } = service;
  const call = jsonCalls(NAME, service, apiKey === undefined ? {} : { "x-api-key": apiKey });
  const pathOf = (id: MemoryId) => `/memories/${encodeURIComponent(id)}`;
  const idsIn = new IdPlace();
  return sharedMem0(NAME, {
    search: (search, query, top_k, signal) => {
      const more = { ...searchFields(search), top_k };
      const { user_id, agent_id, ...conditions } = searchFilters(search);
      const atTop = { user_id, agent_id, ...(search.filters == null ? {} : { filters: conditions }) };
      return idsIn.search((place) => {
        const named = place === "top" ? atTop : { filters: { user_id, agent_id, ...conditions } };
        return call("POST", "/search", signal, { query, ...named, ...more });
      });
    },
    get: (id, signal) => call("GET", pathOf(id), signal),
    add: (scope, addition, signal) => call("POST", "/memories", signal, addFields(scope, addition)),
    async delete(id, signal) {
      await call("DELETE", pathOf(id), signal);
      return true;
    },
    async deleteUser(user_id, signal) {
      await call("DELETE", `/memories?${new URLSearchParams({ user_id })}`, signal);
    },
  });
}

/** Statuses with which a server refuses a search whose ids are not where it looks for them. */
const MISPLACED: ReadonlySet<number> = new Set([400, 422, 500]);

/** Where this server's searches take ids: in `filters`, or at the top as in Mem0 0.1, which answers the newer form with 500. */
class IdPlace {
  #place: "filters" | "top" = "filters";
  #isNewer = false;

  /** Searches; after a refusal with ids in the other place, unless a search with `filters` has worked. */
  async search(search: (place: "filters" | "top") => Promise<unknown>): Promise<unknown> {
    try {
      const found = await search(this.#place);
      this.#isNewer = this.#place === "filters";
      return found;
    } catch (error) {
      if (this.#isNewer || !isMisplaced(error)) throw error;
      const other = this.#place === "filters" ? "top" : "filters";
      const found = await search(other).catch(() => {
        throw error;
      });
      this.#place = other;
      return found;
    }
  }
}

function isMisplaced(error: unknown): boolean {
  return error instanceof MemorySourceError && error.failure.kind === "refused" && MISPLACED.has(error.failure.status);
}
