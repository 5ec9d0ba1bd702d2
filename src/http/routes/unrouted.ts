import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { METHOD_NAME_ALL } from "hono/router";
import { answerProblem } from "../problems/openai-problem.js";
import { notFound, problem } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/request.js";

/** Answers a request without a route: 405 with `Allow` where the path has other methods (RFC 9110 §15.5.6), else 404. */
export function answerUnrouted(app: OpenAPIHono<HttpEnvironment>, c: Context<HttpEnvironment>): Response {
  const { method, path } = c.req;
  const allowed = methodsOf(app, path);
  if (allowed.length === 0) return answerProblem(c, notFound(c));
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
