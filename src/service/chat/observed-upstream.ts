import { type Upstream, UpstreamError } from "../../engines/upstream/upstream.js";
import type { EngineCall } from "../base/memstem-observer.js";

/**
 * An engine whose calls are observed, warm-ups included: time to the answer's first byte, and outcome. Background calls are not.
 *
 * @param clock milliseconds from any point in time
 */
export function observedUpstream(
  upstream: Upstream,
  called: (call: EngineCall) => void,
  clock: () => number,
): Upstream {
  return {
    name: upstream.name,
    async send(call, signal) {
      if (call.isBackground === true) return upstream.send(call, signal);
      const start = clock();
      try {
        const answer = await upstream.send(call, signal);
        const reason = `the upstream engine answered with status ${answer.status}`;
        const failed = answer.status >= 500 ? { failure: { reason, cause: reason } } : {};
        called({ outcome: outcomeOf(answer.status), ms: clock() - start, ...failed });
        return answer;
      } catch (error) {
        if (error instanceof UpstreamError) {
          const { failure, message: cause } = error;
          const reason = cause.replace(` at ${upstream.name}`, "");
          const failed = failure.kind === "aborted" ? {} : { failure: { reason, cause } };
          called({ outcome: failure.kind, ms: clock() - start, ...failed });
        }
        throw error;
      }
    },
  };
}

function outcomeOf(status: number): EngineCall["outcome"] {
  if (status >= 500) return "server_error";
  return status >= 400 ? "client_error" : "ok";
}
