import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { METHOD_NAME_ALL } from "hono/router";
import { answerProblem } from "../problems/openai-problem.js";
import { notFound, problem } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/environment.js";

/** Answers what no route took: 405 with `Allow` where the path takes other methods (RFC 9110 §15.5.6), else 404. */
export function answerUnrouted(app: OpenAPIHono<HttpEnvironment>, c: Context<HttpEnvironment>): Response {
  const { method, path } = c.req;
  const allowed = methodsOf(app, path);
  if (allowed.length === 0) return answerProblem(c, notFound(c));
  const allow = allowed.join(", ");
  return answerProblem(c, problem(405, `${path} takes ${allow}, not ${method}`), { headers: { allow } });
}

/** The methods that some route takes at a path. The router is asked, so that routes are named in one place. */
function methodsOf({ routes, router }: OpenAPIHono<HttpEnvironment>, path: string): readonly string[] {
  // What is for all methods is what every request passes through, and no route.
  const known = new Set(routes.map(({ method }) => method).filter((method) => method !== METHOD_NAME_ALL));
  return [...known]
    .filter((method) => router.match(method, path)[0].some(([[, route]]) => route.method === method))
    .flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
}
