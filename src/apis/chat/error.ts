import type { JsonObject } from "../../core/text/json.js";
import type { ApiFailure } from "../api/api.js";

const KINDS: Readonly<Record<number, { readonly type: string; readonly code: string }>> = {
  401: { type: "invalid_request_error", code: "invalid_api_key" },
  429: { type: "requests", code: "rate_limit_exceeded" },
};

/** OpenAI's error object. Source: https://platform.openai.com/docs/guides/error-codes */
export function error({ status, message, field, upstreamFailure }: ApiFailure): JsonObject {
  const kind = KINDS[status] ?? { type: status < 500 ? "invalid_request_error" : "server_error", code: null };
  const { type, code } =
    upstreamFailure === null ? kind : { type: "upstream_error", code: `upstream_${upstreamFailure}` };
  return { error: { message, type, param: field, code } };
}
