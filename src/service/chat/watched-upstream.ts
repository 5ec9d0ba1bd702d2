import { type Upstream, UpstreamError } from "../../engines/upstream/upstream.js";
import type { EngineCall } from "../base/memstem-observer.js";

/**
 * An engine whose every call is told of, warm-ups included: how long its answer's first byte took, and how it began.
 *
 * @param clock milliseconds from any point in time
 */
export function watchedUpstream(upstream: Upstream, called: (call: EngineCall) => void, clock: () => number): Upstream {
  return {
    name: upstream.name,
    async send(call, signal) {
      const start = clock();
      try {
        const answer = await upstream.send(call, signal);
        called({ outcome: outcomeOf(answer.status), ms: clock() - start });
        return answer;
      } catch (error) {
        if (error instanceof UpstreamError) called({ outcome: error.failure.kind, ms: clock() - start });
        throw error;
      }
    },
  };
}

function outcomeOf(status: number): EngineCall["outcome"] {
  if (status >= 500) return "server_error";
  return status >= 400 ? "client_error" : "ok";
}
