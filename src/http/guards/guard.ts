import type { Context, MiddlewareHandler } from "hono";
import { type FieldIssue, InvalidRequestError } from "../../service/base/errors.js";
import { answerProblem, problem } from "../problems/problem.js";
import { cutTarget, type HttpEnvironment, isOpenAiPath } from "../requests/request.js";

/** A guard's decision on a request. */
export interface GuardVerdict {
  /** Absent: the request passes. */
  readonly rejection?: Response;
  /** Called once, when the whole answer is sent or the client has disconnected. */
  readonly onAnswered?: () => void;
  /** Called once, when the answer begins. */
  readonly onBegun?: () => void;
}

/** Decides on a request before its body is read, synchronously where possible. Anything it throws is answered as an error. */
export type Guard = (c: Context<HttpEnvironment>) => GuardVerdict | Promise<GuardVerdict>;

export const PASSED: GuardVerdict = {};

/**
 * Runs guards in order, before the routes. They share one Hono step, because a step costs as much as a guard.
 *
 * @param failed the answer to a guard's error
 */
export function guarded(
  guards: readonly Guard[],
  failed: (c: Context<HttpEnvironment>, error: unknown) => Response,
): MiddlewareHandler<HttpEnvironment> {
  return async function guarded(c, next) {
    const passed: GuardVerdict[] = [];
    let rejection: Response | undefined;
    try {
      for (const guard of guards) {
        const deciding = guard(c);
        const verdict = deciding instanceof Promise ? await deciding : deciding;
        rejection = verdict.rejection;
        if (rejection !== undefined) break;
        passed.push(verdict);
        if (verdict.onAnswered === undefined) continue;
        if (c.env.outgoing.closed) verdict.onAnswered();
        else c.env.outgoing.once("close", verdict.onAnswered);
      }
    } catch (error) {
      rejection = failed(c, error);
    }
    try {
      if (rejection === undefined) await next();
      else c.res = rejection;
    } finally {
      for (const { onBegun } of passed) onBegun?.();
    }
  };
}

/** OWASP's secure headers for an API: no framing, sniffing, scripts or caching. `Strict-Transport-Security` is left to the TLS proxy. */
export const SECURITY_HEADERS = [
  ["content-security-policy", "default-src 'none'; frame-ancestors 'none'"],
  ["cross-origin-resource-policy", "same-origin"],
  ["cross-origin-opener-policy", "same-origin"],
  ["referrer-policy", "no-referrer"],
  ["x-content-type-options", "nosniff"],
  ["x-frame-options", "DENY"],
  ["cache-control", "no-store"],
] as const;

/** Protocols that a client offers beside an ordinary request, which the server may ignore (RFC 9110 §7.8): HTTP/2 and TLS. */
const MERELY_OFFERED = /^(?:h2c?|http|tls)(?:\/|$)/i;

/** Rejects WebSockets and other protocols below `/v1` with 426, so that a client goes on over HTTP at once. */
export function rejectUpgrade(): Guard {
  return function rejectUpgrade(c) {
    const asked = (c.req.header("upgrade") ?? "").split(",").map((name) => name.trim());
    if (!isOpenAiPath(c.req.path) || asked.every((name) => name === "" || MERELY_OFFERED.test(name))) return PASSED;
    const headers = { connection: "close", upgrade: "HTTP/1.1" };
    return {
      rejection: answerProblem(c, problem(426, "only HTTP is served here: send the request without upgrade"), {
        headers,
      }),
    };
  };
}

const OWN_HEADER = /^x-memprefix-/i;

/**
 * Rejects ambiguous requests: a repeated `x-memprefix-` header or query parameter (Node would join two user ids into a third), and a target
 * whose escapes are not UTF-8, which would be taken literally. The query of an OpenAI-compatible path belongs to the engine.
 */
export function rejectAmbiguous(): Guard {
  return function rejectAmbiguous(c) {
    const { url = "", rawHeaders: raw } = c.env.incoming;
    const { path, query } = cutTarget(url);
    const isEngines = isOpenAiPath(c.req.path);
    if (!isDecodable(path) || (!isEngines && !isDecodable(query))) {
      return { rejection: answerProblem(c, problem(400, "the request target has escapes that are not UTF-8")) };
    }
    const own = raw.filter((name, at) => at % 2 === 0 && OWN_HEADER.test(name)).map((name) => name.toLowerCase());
    const parameters = isEngines || !query.includes("&") ? [] : [...new URLSearchParams(query).keys()];
    const issues = [...repeated(own), ...repeated(parameters)];
    if (issues.length > 0) throw new InvalidRequestError(issues);
    return PASSED;
  };
}

function isDecodable(text: string): boolean {
  if (!text.includes("%")) return true;
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function repeated(names: readonly string[]): FieldIssue[] {
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at));
  return [...twice].map((field) => ({ field, message: "must be given once" }));
}
