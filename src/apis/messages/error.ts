import type { JsonObject } from "../../core/text/json.js";
import type { ApiFailure } from "../api/api.js";

const KINDS: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
};

/** Anthropic's error object. Source: https://platform.claude.com/docs/en/api/errors */
export function error({ status, message }: ApiFailure): JsonObject {
  const type = KINDS[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
  return { type: "error", error: { type, message } };
}
