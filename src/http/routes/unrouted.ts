import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { METHOD_NAME_ALL } from "hono/router";
import { answerProblem } from "../problems/openai-problem.js";
import { notFound, problem } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/request.js";

/** Paths below `/v1`, as a client requests them whose base URL lacks it, or has it twice. */
const WITHOUT_V1 =
  /^((?:\/plain|\/users\/[^/]+(?:\/agents\/[^/]+)?(?:\/conversations\/[^/]+)?)?)\/((?:chat\/completions|responses|models|embeddings|completions)(?:\/.*)?)$/;
const WITH_TWO = /^\/v1\/v1\/(.+)$/;

/**
 * Answers a request without a route: 405 with `Allow` where the path has other methods (RFC 9110 §15.5.6), else what `passed` makes of it,
 * else 404, which says what to use instead.
 */
export function answerUnrouted(
  app: OpenAPIHono<HttpEnvironment>,
  c: Context<HttpEnvironment>,
  passed: () => Promise<Response> | Response | null,
): Promise<Response> | Response {
  const { method, path } = c.req;
  const allowed = methodsOf(app, path);
  if (allowed.length === 0) {
    const [, base = "", below] = WITHOUT_V1.exec(path) ?? [];
    const meant = WITH_TWO.exec(path)?.[1] ?? below;
    if (meant !== undefined) {
      const detail = `there is no ${path}: use ${base}/v1/${meant}, with a base URL that ends with one /v1`;
      return answerProblem(c, problem(404, detail));
    }
    return passed() ?? answerProblem(c, notFound(c));
  }
  const allow = allowed.join(", ");
  return answerProblem(c, problem(405, `${path} takes ${allow}, not ${method}`), { headers: { allow } });
}

/** The methods of a path, by the router: routes are declared in one place. */
function methodsOf({ routes, router }: OpenAPIHono<HttpEnvironment>, path: string): readonly string[] {
  // Entries for all methods are middleware, not routes.
  const known = new Set(routes.map(({ method }) => method).filter((method) => method !== METHOD_NAME_ALL));
  return [...known]
    .filter((method) => router.match(method, path)[0].some(([[, route]]) => route.method === method))
    .flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
}
