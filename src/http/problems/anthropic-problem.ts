import { z } from "zod";
import { NotFoundError } from "../../service/base/errors.js";
import { type Problem, problemSchema } from "./problem.js";

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
