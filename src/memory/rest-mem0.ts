import type { MemoryId } from "../core/text/ids.js";
import { filtersOf, searchFilters, searchOptions } from "./mem0-identity.js";
import { checkedService, type Mem0Service, requestJson } from "./mem0-service.js";
import type { MemorySource } from "./memory-source.js";
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
  const pathOf = (id: MemoryId) => `/memories/${encodeURIComponent(id)}`;
  return sharedMem0(NAME, {
    search: (search, query, top_k, signal) => {
      const { showExpired: show_expired, referenceDate: reference_date, ...options } = searchOptions(search);
      const body = { query, filters: searchFilters(search), ...options, show_expired, reference_date, top_k };
      return send(service, "POST", "/search", signal, body);
    },
    get: (id, signal) => send(service, "GET", pathOf(id), signal),
    add: (scope, { messages, runId, ...options }, signal) =>
      send(service, "POST", "/memories", signal, { messages, ...filtersOf(scope), run_id: runId, ...options }),
    async delete(id, signal) {
      await send(service, "DELETE", pathOf(id), signal);
      return true;
    },
    async deleteUser(user_id, signal) {
      await send(service, "DELETE", `/memories?${new URLSearchParams({ user_id })}`, signal);
    },
  });
}

async function send(
  service: Mem0Service,
  method: "GET" | "POST" | "DELETE",
  path: string,
  signal: AbortSignal,
  body?: unknown,
): Promise<unknown> {
  const { url, apiKey } = service;
  return await requestJson({
    source: NAME,
    url: `${url}${path}`,
    method,
    headers: {
      accept: "application/json",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(apiKey === undefined ? {} : { "x-api-key": apiKey }),
    },
    signal,
    body: JSON.stringify(body),
    secret: apiKey,
  });
}
