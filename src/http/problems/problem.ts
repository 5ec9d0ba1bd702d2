/*
 * problems: every error as an answer.
 * Enters: a handler's error, or a reason to reject. Leaves: `application/problem+json` (RFC 9457) with status, title, fields and
 * `Retry-After`; on OpenAI-compatible paths also OpenAI's error shape. Internal faults give no detail: it is in the log.
 */

import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { z } from "zod";
import type { Api } from "../../apis/api/api.js";
import { APIS } from "../../apis/apis.js";
import type { JsonObject } from "../../core/text/json.js";
import {
  AbandonedRequestError,
  BusyUserError,
  DeletedMeanwhileError,
  type FieldIssue,
  InvalidRequestError,
  MemorySourceError,
  NotFoundError,
  StoreUnavailableError,
  UpstreamError,
} from "../../service/base/errors.js";
import { type HttpEnvironment, isAnthropicPath, isOpenAiPath } from "../requests/request.js";

/** RFC 9457, with the invalid fields. */
export const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string().optional(),
    errors: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: "Problem", description: "A problem (RFC 9457). `errors` names each invalid field." });

export type Problem = z.infer<typeof problemSchema>;

const TITLES: Readonly<Record<number, string>> = {
  400: "Malformed request",
  401: "No valid API key",
  403: "Not allowed",
  404: "Not found",
  405: "Method not allowed",
  408: "Request too slow",
  409: "Deleted meanwhile",
  413: "Request too large",
  415: "Unsupported media type",
  421: "Misdirected request",
  422: "Invalid request",
  426: "Upgrade not supported",
  429: "Too many requests",
  499: "Client closed the request",
  500: "Internal error",
  501: "Not supported",
  502: "The memory source failed",
  503: "Not available",
  504: "The memory source did not answer in time",
  507: "No room",
};

/** `type` is `about:blank`: the status is the kind. */
export function problem(status: number, detail?: string, errors?: readonly FieldIssue[]): Problem {
  return {
    type: "about:blank",
    title: TITLES[status] ?? "Error",
    status,
    ...(detail === undefined ? {} : { detail }),
    ...(errors === undefined ? {} : { errors: errors.map(({ field, message }) => ({ field, message })) }),
  };
}

export function problemResponse(value: Problem, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(value), {
    status: value.status,
    headers: { "content-type": "application/problem+json", ...headers },
  });
}

/** The problem for a handler's error. */
export function problemOf(error: unknown): Problem {
  if (error instanceof InvalidRequestError) return problem(422, error.message, error.issues);
  if (error instanceof NotFoundError) {
    return problem(404, error.message, [{ field: error.field, message: error.message }]);
  }
  if (error instanceof DeletedMeanwhileError) return problem(409, error.message);
  if (error instanceof BusyUserError) return problem(429, error.message);
  if (error instanceof MemorySourceError) return problem(sourceStatus(error), error.message);
  if (error instanceof UpstreamError) return upstreamProblem(error);
  if (error instanceof StoreUnavailableError) return storeProblem(error);
  if (error instanceof SlowBodyError) return problem(408, error.message);
  if (error instanceof BodyBytesError) return problem(503, error.message);
  // Nobody reads it: it keeps log and metrics from counting a fault.
  if (error instanceof AbandonedRequestError) return problem(499, error.message);
  // The framework's only 400 here is the validator's: a body that it cannot parse.
  if (error instanceof HTTPException) return error.status === 400 ? notJson() : problem(error.status, error.message);
  return problem(500, "the request could not be served; the log says why");
}

export function notJson(): Problem {
  return problem(400, "body: is not JSON", [{ field: "body", message: "is not JSON" }]);
}

function sourceStatus({ failure }: MemorySourceError): number {
  switch (failure.kind) {
    case "unsupported":
      return 501;
    case "timeout":
      return 504;
    case "aborted":
      return 503;
    default:
      return 502;
  }
}

/** Whether a problem is a fault of this service or its store, and so is logged. */
export function isFault(error: unknown, { status }: Problem): boolean {
  return status === 500 || (error instanceof StoreUnavailableError && error.fault !== "busy");
}

function problemHeaders(error: unknown): Readonly<Record<string, string>> {
  return error instanceof StoreUnavailableError ? { "retry-after": String(RETRY_AFTER_S[error.fault]) } : {};
}

/** Seconds for `Retry-After`: a lock is short, everything else needs an operator. */
const RETRY_AFTER_S: Readonly<Record<StoreUnavailableError["fault"], number>> = {
  busy: 1,
  full: 30,
  "read-only": 30,
  failing: 30,
  damaged: 300,
  // A server that restarts, or fails over to its standby, is back in seconds.
  unreachable: 5,
};

function storeProblem({ fault, message }: StoreUnavailableError): Problem {
  return problem(fault === "full" ? 507 : 503, message);
}

function upstreamProblem({ failure, message }: UpstreamError): Problem {
  switch (failure.kind) {
    case "timeout":
    case "stalled":
      return { ...problem(504, message), title: "The upstream engine did not answer in time" };
    case "aborted":
      return problem(503, message);
    default:
      return { ...problem(502, message), title: "The upstream engine failed" };
  }
}

export function notFound(context: Pick<Context<HttpEnvironment>, "req">): Problem {
  return problem(404, `no such route: ${context.req.method} ${context.req.path}`);
}

/** A body arrived too slowly. No work was done for it. */
export class SlowBodyError extends Error {
  override readonly name = "SlowBodyError";
}

/** A body exceeds the bytes being read at once. No work was done for it. */
export class BodyBytesError extends Error {
  override readonly name = "BodyBytesError";
  constructor() {
    super("too many bytes of other bodies are being read");
  }
}

const OF_API =
  "that the API's clients can read too. Its origin is in `x-memprefix-error-origin`: `memprefix` or `upstream`.";

/** RFC 9457's shape, and OpenAI's in `error`. */
export const openAiProblemSchema = problemSchema
  .extend({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string().nullable(),
    }),
  })
  .meta({ id: "OpenAIProblem", description: `A problem (RFC 9457) ${OF_API}` });

/** RFC 9457's shape, and Anthropic's, which uses `type` for itself. */
export const anthropicProblemSchema = problemSchema
  .extend({ type: z.literal("error"), error: z.object({ type: z.string(), message: z.string() }) })
  .meta({ id: "AnthropicProblem", description: `A problem (RFC 9457) ${OF_API}` });

/** Sends a problem in the shape that the path's clients read. `error`: its cause. */
export function answerProblem(
  c: Pick<Context<HttpEnvironment>, "req">,
  value: Problem,
  { error, headers = {} }: { readonly error?: unknown; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  const all = { ...problemHeaders(error), ...headers };
  if (!isOpenAiPath(c.req.path)) return problemResponse(value, all);
  const origin = error instanceof UpstreamError ? "upstream" : "memprefix";
  const body = { ...value, ...errorOf(apiOf(c.req.path), value, error) };
  return problemResponse(body, { ...all, "x-memprefix-error-origin": origin });
}

/** The API of a path; all OpenAI-compatible paths share the errors of chat completions. */
function apiOf(path: string): Api {
  return isAnthropicPath(path) ? APIS.messages : APIS.chat;
}

function errorOf(api: Api, { status, title, detail, errors }: Problem, error?: unknown): JsonObject {
  const upstreamFailure = error instanceof UpstreamError ? error.failure.kind : null;
  return api.error({ status, message: detail ?? title, field: errors?.[0]?.field ?? null, upstreamFailure });
}

/** Why a request was rejected before any work was done: a label of the metrics, without data of the caller. */
export type RejectionReason =
  | "no_key"
  | "host"
  | "origin"
  | "too_large"
  | "user_queue"
  | "in_flight"
  | "body_bytes"
  | "slow_body"
  | "stopping";

export type OnRejected = (reason: RejectionReason) => void;

/** For limits that free up by themselves. */
export const RETRY_SOON = { "retry-after": "1" } as const;

/** Rejects a request that may be retried; the detail names the limit. */
export function rejectForNow(c: Pick<Context<HttpEnvironment>, "req">, detail: string): Response {
  return answerProblem(c, problem(503, detail), { headers: RETRY_SOON });
}
