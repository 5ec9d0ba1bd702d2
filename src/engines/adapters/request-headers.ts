import type { RequestId } from "../../core/index.js";

/** The header by which engines, gateways and their logs name a request; vLLM takes its request id from it. */
export function requestIdHeader(requestId: RequestId): Readonly<Record<string, string>> {
  return { "x-request-id": requestId };
}
