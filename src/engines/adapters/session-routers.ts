import type { JsonObject } from "../../core/text/json.js";
import type { EngineAdapter } from "./engine-adapter.js";

/** Headers by which gateways send requests with equal values to one replica: SGLang's model gateway and NVIDIA Dynamo. */
const ROUTING_HEADERS = ["x-smg-routing-key", "x-dynamo-session-id"] as const;

/** The headers that route a request to a worker; none for no worker. */
export function routingHeaders(worker: string | undefined): Readonly<Record<string, string>> {
  return worker === undefined ? {} : Object.fromEntries(ROUTING_HEADERS.map((header) => [header, worker]));
}

/** A conversation's key for a router in front of an engine's replicas, so that its requests reach the replica that cached them. */
export interface SessionRouter {
  /** The header that holds the session's key, in lower case. */
  readonly header?: string;
  /** The field of the body that does. */
  readonly field?: string;
  /** The same for `/responses`, where it differs. */
  readonly responsesField?: string;
}

/**
 * Routers that read a key of the session, by the names that an operator gives. Others take any header's name: vLLM's production stack
 * (`--session-key`), Envoy, nginx, Caddy, HAProxy. Cache-aware routers look at the prompt and need none.
 */
export const SESSION_ROUTERS = {
  /** https://docs.sglang.ai/advanced_features/router.html: policies `manual` and `consistent_hashing`. */
  sglang: { header: "x-smg-routing-key" },
  /** https://docs.nvidia.com/dynamo/dev/agents/identify-agent-sessions: with `--router-session-affinity-ttl-secs`. */
  dynamo: { header: "x-dynamo-session-id" },
  /** https://github.com/vllm-project/router (load balancing): policy `consistent_hash`; `x-request-id`, which every request has, is less than it. */
  "vllm-router": { header: "x-session-id" },
  /**
   * https://github.com/llm-d/llm-d-router, `pkg/epp/framework/plugins/scheduling/scorer/sessionaffinity`: algorithm `session_id_header`. The other
   * one has clients send back what its answers said.
   */
  "llm-d": { header: "x-session-token" },
  /** https://docs.litellm.ai/docs/proxy/auto_routing#session-affinity */
  litellm: { header: "x-litellm-session-id" },
  /** https://docs.getbifrost.ai/providers/session-affinity */
  bifrost: { header: "x-bf-session-id" },
  /** https://docs.x.ai/developers/advanced-api-usage/prompt-caching/maximizing-cache-hits: a header for chats, a field for responses. */
  xai: { header: "x-grok-conv-id", responsesField: "prompt_cache_key" },
  /** https://platform.openai.com/docs/guides/prompt-caching; in place of the family's key, which is the same for all of a user's requests. */
  openai: { field: "prompt_cache_key" },
} as const satisfies Readonly<Record<string, SessionRouter>>;

/** A session's key as its router reads it. Anthropic's `/messages` has no field for one. */
export function routingOf(
  router: SessionRouter,
  path: string,
  key: string,
): { readonly headers: Readonly<Record<string, string>>; readonly fields: JsonObject } {
  const isResponses = path === "responses";
  const { responsesField } = router;
  const field = path === "messages" ? undefined : ((isResponses ? responsesField : undefined) ?? router.field);
  const header = isResponses && responsesField !== undefined ? undefined : router.header;
  return {
    headers: header === undefined ? {} : { [header]: key },
    fields: field === undefined ? {} : { [field]: key },
  };
}

/** SGLang's adapter for its gateway, which takes `rid` for the session's key where there is one: every request would be a session. */
export function behindSglangGateway(adapter: EngineAdapter): EngineAdapter {
  return {
    ...adapter,
    emit: (prompt) => {
      const emission = adapter.emit(prompt);
      const { rid: _rid, ...fields } = emission.fields;
      return { ...emission, fields };
    },
  };
}
