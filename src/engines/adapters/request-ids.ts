import type { RequestId } from "../../core/index.js";

/*
 * Request ids as ContextPilot's eviction hooks track them: `req-` and no further dash (its `_vllm_hook.py`, 0.5.0). An engine puts its own
 * prefix and suffixes around them, of which the hooks take off some: vLLM 0.32 calls a chat `chatcmpl-req-…-1a2b3c4d`.
 */

const NAMED_BY_ENGINE = /^(?:chatcmpl-|cmpl-|batch-)?(req-[0-9a-f]{32})(?:-[0-9a-f]+)*$/;

/** The id of a request, of a UUID. */
export function requestIdOf(uuid: string): RequestId {
  return `req-${uuid.replaceAll("-", "")}` as RequestId;
}

/** The id that a prompt was sent with, of what its engine calls it; others unmodified. */
export function sentRequestId(id: RequestId): RequestId {
  return (NAMED_BY_ENGINE.exec(id)?.[1] ?? id) as RequestId;
}
