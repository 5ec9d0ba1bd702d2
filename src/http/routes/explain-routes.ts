import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { z } from "zod";
import { responses } from "../contracts/documented-route.js";
import {
  explainPath,
  explainQuery,
  explainResult,
  requestExplainQuery,
  writeExplanation,
} from "../contracts/explain-contract.js";
import type { HttpEnvironment } from "../requests/environment.js";

/** Adds the route, with the request's id in its path and, as for users, in its query. */
export function addExplainRoutes(app: OpenAPIHono<HttpEnvironment>): void {
  const explained = {
    method: "get",
    summary: "Why a prompt hit as far as it did",
    responses: responses(explainResult),
  } as const;
  const explain = (c: Context<HttpEnvironment>, given: z.output<typeof requestExplainQuery>) => {
    const { user_id, agent_id, request_id } = given;
    const { explanation, words } = c.get("memstem").explain(user_id, agent_id ?? null, request_id);
    return c.json(writeExplanation(explanation, words), 200);
  };
  app.openapi(
    createRoute({
      ...explained,
      path: "/requests/{request_id}/explain",
      request: { params: explainPath, query: explainQuery },
    }),
    (c) => explain(c, { ...c.req.valid("param"), ...c.req.valid("query") }),
  );
  app.openapi(createRoute({ ...explained, path: "/request/explain", request: { query: requestExplainQuery } }), (c) =>
    explain(c, c.req.valid("query")),
  );
}
