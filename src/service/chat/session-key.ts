import { routingOf, type SessionRouter } from "../../engines/adapters/session-routers.js";
import { withAdded } from "../../engines/upstream/upstream-headers.js";
import { formatOf } from "./chat-format.js";
import { type ChatComposer, type ChatRequest, NOBODY } from "./chat-request.js";

/**
 * A request with its session's key for the router, as if the client had sent it, so that warm-ups and depth probes have it too. What the
 * client itself sent stays. A call that a client makes for itself has another prompt than its conversation: it gets no key, nor does a
 * request that names nobody. A request that
 * names workers gets the headers of the one that memstem chose.
 */
export function withSessionKey(
  memstem: Pick<ChatComposer, "sessionKey">,
  request: ChatRequest,
  router: SessionRouter | null,
): ChatRequest {
  const hasWorkers = (request.compose?.workers ?? []).length > 0;
  const hasNoKey = request.notWanted === "side_call" || request.userId === NOBODY;
  if (router === null || hasWorkers || hasNoKey) return request;
  const { userId, agentId, conversationId = request.compose?.conversationId ?? null } = request;
  const key = memstem.sessionKey(userId, agentId, conversationId);
  const { headers, fields } = routingOf(router, formatOf(request).path, key);
  return { ...request, headers: withAdded(request.headers, headers), body: { ...fields, ...request.body } };
}
