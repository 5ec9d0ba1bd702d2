import { createRoute } from "@hono/zod-openapi";
import type { z } from "zod";
import { requireJson } from "../guards/body.js";
import type { problemSchema } from "../problems/problem.js";
import { PRETTY_PARAMETER } from "./answer-form.js";
import { exampleOf } from "./examples.js";
import { headerReferences, RATE_HEADERS } from "./openapi-headers.js";
import { problemResponses } from "./openapi-problems.js";
import { described, type Operation } from "./operations.js";

/** A route that takes JSON and answers with it. */
export function post<B extends z.ZodType, R extends z.ZodType, S extends 200 | 201 = 200>(
  path: string,
  operation: Operation,
  body: B,
  result: R,
  status: S = 200 as S,
) {
  const { request: example } = exampleOf(operation);
  const json = { schema: body, ...(example === undefined ? {} : { example }) };
  return createRoute({
    method: "post",
    path,
    ...described(operation),
    parameters: [PRETTY_PARAMETER],
    middleware: requireJson,
    request: { body: { required: true, content: { "application/json": json } } },
    responses: responses(operation, result, status),
  });
}

/** A route without a body. Without a query of its own it takes only `pretty`. */
export function bodiless<
  M extends "get" | "delete",
  P extends string,
  Q extends { readonly params?: z.ZodObject; readonly query?: z.ZodObject },
  R extends z.ZodType,
>(method: M, path: P, operation: Operation, request: Q, result: R) {
  return createRoute({
    method,
    path,
    ...described(operation),
    parameters: request.query === undefined ? [PRETTY_PARAMETER] : [],
    request,
    responses: responses(operation, result),
  });
}

/** What a route answers: its result, and its problems by status. */
function responses<R extends z.ZodType, S extends 200 | 201 = 200>(
  operation: Operation,
  result: R,
  status: S = 200 as S,
) {
  const { answer: example } = exampleOf(operation);
  const documented: object = {
    [status]: {
      description: "Success.",
      headers: headerReferences(RATE_HEADERS),
      content: { "application/json": { schema: result, ...(example === undefined ? {} : { example }) } },
    },
    ...problemResponses(operation.problems),
  };
  // Guards and the error handler send the problems, so handlers need not know of them.
  return documented as { [K in S]: { description: string; content: { "application/json": { schema: R } } } } & {
    default: { description: string; content: { "application/problem+json": { schema: typeof problemSchema } } };
  };
}
