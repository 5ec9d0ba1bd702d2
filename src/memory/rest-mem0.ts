import type { RetrievedMemory } from "../core/blocks/context-block.js";
import type { MemoryId } from "../core/text/ids.js";
import { append } from "../core/text/lists.js";
import { isNotFound, isPathSegment, requestJson } from "./bounded-json.js";
import { currentOf, noneIfMissing } from "./mem0-current.js";
import { filtersOf, isOwnedBy, searchFilters, sharedScope, sharedSearch, sharedUserName } from "./mem0-identity.js";
import { readMem0Added, searchMem0 } from "./mem0-results.js";
import { checkedService, checkMemoryText, type Mem0Service } from "./mem0-service.js";
import type { MemorySource } from "./memory-source.js";

/** Where Mem0's self-hosted REST server is. */
export interface RestMem0Options {
  /** Its root: `http://mem0:8000`. */
  readonly url: string;
  /** Sent as `X-API-Key`; absent where the server needs none. */
  readonly apiKey?: string;
  /** Least similarity, 0 to 1; absent: the server's default. */
  readonly threshold?: number;
}

const NAME = "mem0-rest";

/**
 * Memories of Mem0's self-hosted REST server. Another system owns them, so Mem0's meaning of a scope applies: without an agent, a search
 * sees all of the user's memories, whatever agent they were added for. Throws a `TypeError` for settings that cannot work.
 */
export function openRestMem0(options: RestMem0Options): MemorySource {
  const service = checkedService(options);
  const threshold = service.threshold === undefined ? {} : { threshold: service.threshold };

  return {
    name: NAME,
    owned: false,
    sourceUserId: (scope) => sharedUserName(NAME, scope),

    async search(asked, signal) {
      const search = sharedSearch(NAME, asked);
      const { query, topK } = asked;
      const expired = search.showExpired ? { show_expired: true } : {};
      const body = { query, filters: searchFilters(search), ...threshold, ...expired };
      const ask = (top_k: number) => send(service, "POST", "/search", signal, { ...body, top_k });
      return await searchMem0(NAME, search, topK, ask);
    },

    async current(scope, ids, signal) {
      const get = (id: MemoryId) =>
        send(service, "GET", `/memories/${encodeURIComponent(id)}`, signal).catch(noneIfMissing);
      return await currentOf(ids.filter(isPathSegment), sharedScope(NAME, { ...scope, agentId: null }), get);
    },

    async add(scope, memories, signal) {
      const names = filtersOf(sharedScope(NAME, scope));
      for (const { text } of memories) checkMemoryText(NAME, text);
      const added: RetrievedMemory[] = [];
      // One request a memory: metadata belongs to a whole request.
      for (const { text, metadata } of memories) {
        const body = {
          messages: [{ role: "user", content: text }],
          ...names,
          infer: false,
          ...(metadata === undefined ? {} : { metadata }),
        };
        append(added, readMem0Added(await send(service, "POST", "/memories", signal, body), text));
      }
      return added;
    },

    async delete(scope, id, signal) {
      const names = sharedScope(NAME, scope);
      if (!isPathSegment(id)) return false;
      const path = `/memories/${encodeURIComponent(id)}`;
      try {
        // An unknown id is answered with null and 200, or with 404, depending on the server's version.
        if (!isOwnedBy(await send(service, "GET", path, signal), names)) return false;
        await send(service, "DELETE", path, signal);
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    },

    async deleteUser(scope, signal) {
      const user = new URLSearchParams({ user_id: sharedUserName(NAME, scope) });
      await send(service, "DELETE", `/memories?${user}`, signal);
    },

    async close() {},
  };
}

async function send(
  service: Mem0Service,
  method: "GET" | "POST" | "DELETE",
  path: string,
  signal: AbortSignal,
  body?: unknown,
): Promise<unknown> {
  return await requestJson({
    source: NAME,
    url: `${service.url}${path}`,
    method,
    headers: {
      accept: "application/json",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(service.apiKey === undefined ? {} : { "x-api-key": service.apiKey }),
    },
    signal,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(service.apiKey === undefined ? {} : { secret: service.apiKey }),
  });
}
