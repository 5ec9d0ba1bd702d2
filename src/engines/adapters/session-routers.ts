import type { JsonObject } from "../../core/text/json.js";
import type { EngineAdapter } from "./engine-adapter.js";

const ROUTING_HEADERS = ["x-smg-routing-key", "x-dynamo-session-id"] as const;

export function routingHeaders(worker: string | undefined): Readonly<Record<string, string>> {
  return worker === undefined ? {} : Object.fromEntries(ROUTING_HEADERS.map((header) => [header, worker]));
}

/** Where a router reads a conversation's key (a header in lower case, or a body field), so that its requests reach the replica that cached them. */
export interface SessionRouter {
  readonly header?: string;
  readonly field?: string;
  /** Replaces `field` and `header` for `/responses`. */
  readonly responsesField?: string;
}

/** Routers with a fixed name for the key. Others accept any header: vLLM's production stack (`--session-key`), Envoy, nginx, Caddy, HAProxy. */
export const SESSION_ROUTERS = {
  /** https://docs.sglang.ai/advanced_features/router.html: policies `manual` and `consistent_hashing`. */
  sglang: { header: "x-smg-routing-key" },
  /** https://docs.nvidia.com/dynamo/dev/agents/identify-agent-sessions: with `--router-session-affinity-ttl-secs`. */
  dynamo: { header: "x-dynamo-session-id" },
  /** https://github.com/vllm-project/router (load balancing): policy `consistent_hash`. Takes precedence over `x-request-id`. */
  "vllm-router": { header: "x-session-id" },
  /** https://github.com/llm-d/llm-d-router, `pkg/epp/framework/plugins/scheduling/scorer/sessionaffinity`: algorithm `session_id_header`. */
  "llm-d": { header: "x-session-token" },
  /** https://docs.litellm.ai/docs/proxy/auto_routing#session-affinity */
  litellm: { header: "x-litellm-session-id" },
  /** https://docs.getbifrost.ai/providers/session-affinity */
  bifrost: { header: "x-bf-session-id" },
  /** https://docs.x.ai/developers/advanced-api-usage/prompt-caching/maximizing-cache-hits: a header for chats, a field for responses. */
  xai: { header: "x-grok-conv-id", responsesField: "prompt_cache_key" },
  /** https://platform.openai.com/docs/guides/prompt-caching; replaces the family's key, which all of a user's requests share. */
  openai: { field: "prompt_cache_key" },
} as const satisfies Readonly<Record<string, SessionRouter>>;

/** Anthropic's `/messages` has no field for a key. */
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

/** SGLang's gateway prefers `rid` to the session's key, which would make every request a session: `rid` is removed. */
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
