import { AsyncLocalStorage } from "node:async_hooks";
import type { MemoryClient } from "mem0ai";
import { z } from "zod";
import { requestJson } from "./bounded-json.js";
import { loaded } from "./load-once.js";
import { withoutTelemetry } from "./mem0-environment.js";
import { MemorySourceError } from "./memory-source.js";

/** Mem0's own client, run under a signal. */
export interface BoundedMem0Client {
  /** Runs `work` with the client; all its requests stop when `signal` aborts. Rejects with {@link MemorySourceError} only. */
  run<T>(signal: AbortSignal, work: (client: MemoryClient) => Promise<T>): Promise<T>;
}

/** The call that a request of the client is part of. */
interface Call {
  readonly signal: AbortSignal;
  /** The client wraps some errors in its own, which keep only the message. */
  failure?: MemorySourceError;
}

/** What the client hands to `fetch`. */
const fetchOptions = z.object({
  method: z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"]).default("GET"),
  headers: z.record(z.string(), z.string()),
  body: z.string().optional(),
});

/**
 * Loads Mem0's client with another way to send requests. As it comes, it takes no signal, has no time limit, reads a body of any size,
 * and pings the service when it is built, printing what goes wrong. Its knowledge of the wire (paths, spelling, payloads) stays in use.
 */
export async function loadBoundedMem0Client(
  source: string,
  options: { readonly apiKey: string; readonly host: string },
): Promise<BoundedMem0Client> {
  withoutTelemetry();
  const { MemoryClient } = await loaded(import("mem0ai"));
  const calls = new AsyncLocalStorage<Call>();

  class BoundedClient extends MemoryClient {
    /** Only finds out who to report telemetry for. */
    override async ping(): Promise<void> {}

    override async _fetchRawJson(url: string, given: unknown): Promise<unknown> {
      const call = calls.getStore();
      if (call === undefined) throw new Error("a request outside of any call");
      const { method, headers, body } = fetchOptions.parse(given);
      try {
        return await requestJson({
          source,
          url,
          method,
          headers: { ...headers, accept: "application/json" },
          signal: call.signal,
          secret: options.apiKey,
          ...(body === undefined ? {} : { body }),
        });
      } catch (error) {
        if (error instanceof MemorySourceError) call.failure = error;
        throw error;
      }
    }
  }

  const client = new BoundedClient({ ...options });
  return {
    async run(signal, work) {
      const call: Call = { signal };
      try {
        return await calls.run(call, () => work(client));
      } catch (error) {
        throw call.failure ?? new MemorySourceError(source, { kind: "unreadable", cause: nameOf(error) });
      }
    },
  };
}

/** Without the message, which may quote the answer. */
function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}
