import { z } from "zod";
import { UpstreamError } from "../../service/base/errors.js";
import { type GuardedRequest, isAnthropicPath, isOpenAiPath } from "../requests/request.js";
import { anthropicErrorOf } from "./anthropic-problem.js";
import { type Problem, problemHeaders, problemResponse, problemSchema } from "./problem.js";

/** The error object of OpenAI's API. */
const openAiError = z.object({
  message: z.string(),
  type: z.string(),
  param: z.string().nullable(),
  code: z.string().nullable(),
});

/** A problem in both shapes: RFC 9457's, and OpenAI's in `error`. */
export const openAiProblemSchema = problemSchema.extend({ error: openAiError }).meta({
  id: "OpenAIProblem",
  description:
    "A problem (RFC 9457) that OpenAI's clients can read too. Its origin is in `x-memstem-error-origin`: `memstem` or `upstream`.",
});

/** Sends a problem in the shape that the path's clients read. `error`: its cause. */
export function answerProblem(
  c: Pick<GuardedRequest, "req">,
  value: Problem,
  { error, headers = {} }: { readonly error?: unknown; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  const all = { ...problemHeaders(error), ...headers };
  if (!isOpenAiPath(c.req.path)) return problemResponse(value, all);
  const origin = error instanceof UpstreamError ? "upstream" : "memstem";
  const body = { ...value, ...errorFor(c.req.path, value, error) };
  return problemResponse(body, { ...all, "x-memstem-error-origin": origin });
}

/** A problem as the error object of a path's API; on paths of no API as OpenAI's. */
function errorFor(path: string, value: Problem, error: unknown): object {
  return isAnthropicPath(path) ? anthropicErrorOf(value, error) : openAiErrorOf(value, error);
}

/**
 * An event that ends a stream which the engine broke off: the path's clients raise it as an error. The blank line before it ends a truncated
 * event.
 */
export function errorEventFor(path: string, value: Problem, error: unknown): string {
  const name = isAnthropicPath(path) ? "event: error\n" : "";
  return `\n\n${name}data: ${JSON.stringify(errorFor(path, value, error))}\n\n`;
}

/** OpenAI's types and codes for the statuses that its clients tell apart. */
const OPENAI_KINDS: Readonly<Record<number, { readonly type: string; readonly code: string }>> = {
  401: { type: "invalid_request_error", code: "invalid_api_key" },
  429: { type: "requests", code: "rate_limit_exceeded" },
};

/** A problem as OpenAI's error object. */
export function openAiErrorOf(value: Problem, error?: unknown): { readonly error: z.output<typeof openAiError> } {
  const upstream = error instanceof UpstreamError;
  const { type, code } = OPENAI_KINDS[value.status] ?? {
    type: value.status < 500 ? "invalid_request_error" : "server_error",
    code: null,
  };
  return {
    error: {
      message: value.detail ?? value.title,
      type: upstream ? "upstream_error" : type,
      param: value.errors?.[0]?.field ?? null,
      code: upstream ? `upstream_${error.failure.kind}` : code,
    },
  };
}
