import { AsyncLocalStorage } from "node:async_hooks";
import type { MemoryClient } from "mem0ai";
import { z } from "zod";
import { addArguments, filtersOf, type Mem0Search, searchOptions } from "./mem0-identity.js";
import { LoadingError, loaded, loadOnce, withoutTelemetry } from "./mem0-packages.js";
import { checkedService, isNotFound, requestJson } from "./mem0-service.js";
import { type MemorySource, MemorySourceError } from "./memory-source.js";
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
 */
export function openHostedMem0(options: HostedMem0Options): MemorySource {
  const { url, apiKey } = checkedService({ ...options, url: options.url ?? "https://api.mem0.ai" });
  if (apiKey === undefined) throw new TypeError("apiKey: must be given");
  const calls = new AsyncLocalStorage<Call>();
  const client = loadOnce(() =>
    loadBoundedClient(calls, { apiKey, host: url }).catch((error: unknown) => {
      const cause = error instanceof LoadingError ? error.message : "Mem0's client could not be started";
      throw new MemorySourceError(NAME, { kind: "unreachable", cause });
    }),
  );
  const run = async <T>(signal: AbortSignal, work: (client: MemoryClient) => Promise<T>): Promise<T> => {
    const mem0 = await client();
    const call: Call = { signal };
    try {
      return await calls.run(call, () => work(mem0));
    } catch (error) {
      // Without the message, which may quote the answer.
      const cause = error instanceof Error ? error.name : "unknown";
      throw call.failure ?? new MemorySourceError(NAME, { kind: "unreadable", cause });
    }
  };
  return sharedMem0(NAME, {
    async load() {
      await client();
    },
    search(search, query, topK, signal) {
      // Else the platform returns superseded versions too.
      const searching = { filters: platformFilters(search), latestOnly: true, ...searchOptions(search) };
      return run(signal, (mem0) => mem0.search(query, { ...searching, topK }));
    },
    get: (id, signal) => run(signal, (mem0): Promise<unknown> => mem0.get(id)),
    add: (scope, addition, signal) =>
      run(signal, (mem0): Promise<unknown> => mem0.add(...addArguments(scope, addition))),
    async delete(id, signal) {
      await run(signal, (mem0) => mem0.delete(id));
      return true;
    },
    async deleteUser(userId, signal) {
      try {
        // Not `deleteAll({ userId })`: where a missing id means "none", that would leave the agents' memories.
        await run(signal, (mem0) => mem0.deleteUsers({ userId }));
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

interface Call {
  readonly signal: AbortSignal;
  failure?: MemorySourceError;
}

const fetchOptions = z.object({
  method: z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"]).default("GET"),
  headers: z.record(z.string(), z.string()),
  body: z.string().optional(),
});

/** Mem0's client takes no signal, has no timeout, reads a body of any size, and pings the service when it is built: this one does not. */
async function loadBoundedClient(
  calls: AsyncLocalStorage<Call>,
  options: { readonly apiKey: string; readonly host: string },
): Promise<MemoryClient> {
  withoutTelemetry();
  const { MemoryClient } = await loaded(import("mem0ai"));
  class BoundedClient extends MemoryClient {
    /** It only looks up whom to report telemetry for. */
    override async ping(): Promise<void> {}

    override async _fetchRawJson(url: string, given: unknown): Promise<unknown> {
      const call = calls.getStore();
      if (call === undefined) throw new Error("a request outside of any call");
      const { headers, ...sent } = fetchOptions.parse(given);
      const { signal } = call;
      const accepting = { ...headers, accept: "application/json" };
      try {
        return await requestJson({ source: NAME, url, ...sent, headers: accepting, signal, secret: options.apiKey });
      } catch (error) {
        if (error instanceof MemorySourceError) call.failure = error;
        throw error;
      }
    }
  }
  return new BoundedClient({ ...options });
}
