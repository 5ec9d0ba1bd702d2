import type { Context } from "hono";
import { z } from "zod";
import { NotFoundError, UpstreamError } from "../../service/base/errors.js";
import { type HttpEnvironment, isAnthropicPath, isOpenAiPath } from "../requests/request.js";
import { type Problem, problem, problemHeaders, problemResponse, problemSchema } from "./problem.js";

/** The error of Anthropic's API. Source: https://platform.claude.com/docs/en/api/errors */
const anthropicError = z.object({
  type: z.literal("error"),
  error: z.object({
    type: z.string(),
    message: z.string(),
    details: z.object({ error_code: z.literal("thread_not_found") }).optional(),
  }),
});

/**
 * A request goes on with a thread that nobody holds. Clients then send the whole conversation.
 * Source: https://platform.claude.com/docs/en/build-with-claude/message-threads
 */
export class UnheldThreadError extends NotFoundError {
  constructor() {
    super("thread.previous_message_id", "no thread is held here: send the whole conversation");
  }
}

/** A problem in both shapes: RFC 9457's, and Anthropic's, which has `type` for itself. */
export const anthropicProblemSchema = problemSchema.extend(anthropicError.shape).meta({
  id: "AnthropicProblem",
  description:
    "A problem (RFC 9457) that Anthropic's clients can read too. Its origin is in `x-memstem-error-origin`: `memstem` or `upstream`.",
});

const KINDS: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
};

/** A problem as Anthropic's error object. `error`: its cause. */
export function anthropicErrorOf({ status, title, detail }: Problem, error?: unknown): z.output<typeof anthropicError> {
  const kind = KINDS[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
  const details = error instanceof UnheldThreadError ? { details: { error_code: "thread_not_found" as const } } : {};
  return { type: "error", error: { type: kind, message: detail ?? title, ...details } };
}

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
  c: Pick<Context<HttpEnvironment>, "req">,
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

/** OpenAI's types and codes for the statuses that its clients distinguish. */
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

/** Why a request was rejected before any work was done for it: a label of the metrics, without anything of the caller's. */
export type RejectionReason =
  | "no_key"
  | "host"
  | "origin"
  | "too_large"
  | "rate"
  | "concurrency"
  | "user_queue"
  | "pending"
  | "pending_share"
  | "body_share"
  | "slow_body"
  | "lag"
  | "stopping";

/** Called with every rejection. */
export type OnRejected = (reason: RejectionReason) => void;

/** For limits that free up by themselves. */
export const RETRY_SOON = { "retry-after": "1" } as const;

/** Rejects a request, to be retried; the detail names the limit. */
export function rejectForNow(
  c: Pick<Context<HttpEnvironment>, "req">,
  status: 429 | 503,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return answerProblem(c, problem(status, detail), { headers: { ...RETRY_SOON, ...headers } });
}
