import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { z } from "zod";
import { bodiless } from "../contracts/documented-route.js";
import {
  explainPath,
  explainQuery,
  explainResult,
  requestExplainQuery,
  writeExplanation,
} from "../contracts/explain-contract.js";
import { OPERATIONS } from "../contracts/operations.js";
import type { HttpEnvironment } from "../requests/request.js";

/** Adds the route twice: with the request's id in the path, and in the query. */
export function addExplainRoutes(app: OpenAPIHono<HttpEnvironment>): void {
  const explain = async (c: Context<HttpEnvironment>, given: z.output<typeof requestExplainQuery>) => {
    const { user_id, agent_id, request_id } = given;
    const { explanation, words } = await c.get("memstem").explain(user_id, agent_id ?? null, request_id);
    return c.json(writeExplanation(explanation, words), 200);
  };
  const byPath = { params: explainPath, query: explainQuery };
  app.openapi(bodiless("get", "/requests/{request_id}/explain", OPERATIONS.explain, byPath, explainResult), (c) =>
    explain(c, { ...c.req.valid("param"), ...c.req.valid("query") }),
  );
  const byQuery = { query: requestExplainQuery };
  app.openapi(bodiless("get", "/request/explain", OPERATIONS.explainByQuery, byQuery, explainResult), (c) =>
    explain(c, c.req.valid("query")),
  );
}
