import type { Context } from "hono";
import { z } from "zod";
import { UpstreamError } from "../service/errors.js";
import { type Problem, problemHeaders, problemResponse, problemSchema } from "./problem.js";

/** Where OpenAI's clients send their requests. */
const OPENAI_PATHS = "/v1/";

/** What OpenAI's clients read of an error. */
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
    "A problem (RFC 9457) that OpenAI's clients can read too. The header `x-memstem-error-origin` says whose it is.",
});

/** Whether a path is one of those that OpenAI's clients know. */
export function isOpenAiPath(path: string): boolean {
  return path.startsWith(OPENAI_PATHS);
}

/** Sends a problem in the shape that the path's clients read. `error`: what it was made of. */
export function answerProblem(c: Context, value: Problem, error?: unknown): Response {
  const headers = problemHeaders(error);
  if (!isOpenAiPath(c.req.path)) return problemResponse(value, headers);
  const origin = error instanceof UpstreamError ? "upstream" : "memstem";
  return problemResponse(
    { ...value, ...openAiErrorOf(value, error) },
    {
      ...headers,
      "x-memstem-error-origin": origin,
    },
  );
}

/** A problem as OpenAI's clients read it. */
export function openAiErrorOf(value: Problem, error?: unknown): { readonly error: z.output<typeof openAiError> } {
  const upstream = error instanceof UpstreamError;
  const type = value.status < 500 ? "invalid_request_error" : "server_error";
  return {
    error: {
      message: value.detail ?? value.title,
      type: upstream ? "upstream_error" : type,
      param: value.errors?.[0]?.field ?? null,
      code: upstream ? `upstream_${error.failure.kind}` : null,
    },
  };
}
