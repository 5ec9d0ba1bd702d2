import { createRoute } from "@hono/zod-openapi";
import type { z } from "zod";
import { requireJson } from "../guards/body.js";
import { problemSchema } from "../problems/problem.js";
import { REFUSALS } from "./openapi-access.js";

/** A route that takes JSON and answers with it. */
export function post<B extends z.ZodType, R extends z.ZodType, S extends 200 | 201 = 200>(
  path: string,
  summary: string,
  body: B,
  result: R,
  status: S = 200 as S,
) {
  return createRoute({
    method: "post",
    path,
    summary,
    middleware: requireJson,
    request: { body: { required: true, content: { "application/json": { schema: body } } } },
    responses: responses(result, status),
  });
}

/** What a route answers, for the OpenAPI document: its result, refusals, and problems. */
export function responses<R extends z.ZodType, S extends 200 | 201 = 200>(result: R, status: S = 200 as S) {
  const documented: object = {
    [status]: { description: "Done", content: { "application/json": { schema: result } } },
    ...REFUSALS,
    default: { description: "A problem", content: { "application/problem+json": { schema: problemSchema } } },
  };
  // Refusals are no route's own, so routes need not know of them.
  return documented as { [K in S]: { description: string; content: { "application/json": { schema: R } } } } & {
    default: { description: string; content: { "application/problem+json": { schema: typeof problemSchema } } };
  };
}
