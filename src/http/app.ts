import { createRoute, OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { prettyJSON } from "hono/pretty-json";
import type { z } from "zod";
import type { ChatEngine } from "../service/chat.js";
import { mem0Items, newMemories, observationOf } from "../service/companion-options.js";
import { InvalidRequestError } from "../service/errors.js";
import { fieldIssues } from "../service/field-issues.js";
import type { Memstem } from "../service/memstem.js";
import { addBatchRoute, BATCH_PATH } from "./batch-route.js";
import { addChatRoutes } from "./chat-route.js";
import * as wire from "./contracts.js";
import { explainPath, explainQuery, explainResult, writeExplanation } from "./explain-contract.js";
import { Metrics } from "./metrics.js";
import { answerProblem, isOpenAiPath } from "./openai-problem.js";
import { isFault, notFound, notJson, problem, problemOf, problemResponse, problemSchema } from "./problem.js";

/** What the log gets of a request. Never memory text, never a query. */
export interface RequestLog {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  /** Milliseconds. */
  readonly ms: number;
  readonly requestId?: string;
  readonly totalTokens?: number;
  readonly expectedCachedTokens?: number;
  readonly warnings?: readonly string[];
}

/** What the HTTP surface needs. */
export interface HttpParts {
  readonly memstem: Memstem;
  /** The engine that chats are sent on to; null for none. */
  readonly chat: ChatEngine | null;
  readonly version: string;
  /** Most bytes of a request body. */
  readonly maxBodyBytes: number;
  /** Most bytes of a batch in one JSON document. */
  readonly maxBatchBytes: number;
  /** Called once per request. */
  readonly onRequest: (entry: RequestLog) => void;
  /** Called with what a handler threw that is nobody's mistake but ours. */
  readonly onFault: (error: unknown) => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

interface Variables {
  composed?: Pick<RequestLog, "requestId" | "totalTokens" | "expectedCachedTokens" | "warnings">;
}

/** The HTTP surface: `/compose` and its companions, `problem+json` for everything that goes wrong, and its own OpenAPI document. */
export function createApp(parts: HttpParts): OpenAPIHono<{ Variables: Variables }> {
  const { memstem } = parts;
  const app = new OpenAPIHono<{ Variables: Variables }>({
    defaultHook: (result) => {
      if (!result.success) throw new InvalidRequestError(fieldIssues(result.error));
    },
  });

  const metrics = new Metrics(memstem);
  memstem.observe(metrics);
  app.use(async (c, next) => {
    const start = parts.clock();
    await next();
    const { method, routePath } = c.req;
    metrics.served(method, routePath, c.res.status, parts.clock() - start);
    parts.onRequest({
      method,
      route: routePath,
      status: c.res.status,
      ms: parts.clock() - start,
      ...c.get("composed"),
    });
  });
  const limit = bodyLimit({
    maxSize: parts.maxBodyBytes,
    onError: (c) => {
      const message = `must be at most ${parts.maxBodyBytes} bytes`;
      return answerProblem(c, problem(413, `body: ${message}`, [{ field: "body", message }]));
    },
  });
  const pretty = prettyJSON({ space: 2 });
  // A batch keeps limits of its own, and is answered as it is made; an engine's answer goes through as it is.
  app.use((c, next) => (c.req.path === BATCH_PATH ? next() : limit(c, next)));
  app.use((c, next) => (c.req.path === BATCH_PATH || isOpenAiPath(c.req.path) ? next() : pretty(c, next)));
  app.onError((error, c) => {
    const value = problemOf(error);
    if (isFault(error, value)) parts.onFault(error);
    return answerProblem(c, value, error);
  });
  app.notFound((c) => answerProblem(c, notFound(c)));

  app.openapi(post("/compose", "Compose a prompt", wire.composeBodyWithNulls, wire.composeResult), async (c) => {
    const answer = await memstem.compose(wire.readCompose(c.req.valid("json")), c.req.raw.signal);
    c.set("composed", {
      requestId: answer.requestId,
      totalTokens: answer.plan.totalTokens,
      expectedCachedTokens: answer.plan.expectedCachedTokens,
      warnings: answer.warnings.map(({ code }) => code),
    });
    return c.json(wire.writeCompose(answer), 200);
  });
  addBatchRoute(app, parts);
  addChatRoutes(app, parts);
  app.openapi(post("/memories", "Add memories to the source", wire.addBody, wire.addResult, 201), async (c) => {
    const { user_id, agent_id = null, memories, metadata } = c.req.valid("json");
    const added = newMemories(memories, metadata);
    return c.json({ results: mem0Items(await memstem.addMemories(user_id, agent_id, added, c.req.raw.signal)) }, 201);
  });
  app.openapi(
    post("/evict", "Say that the engine dropped requests' cache", wire.evictBody, wire.evictResult),
    async (c) => c.json(wire.writeEviction(await memstem.evict(c.req.valid("json").request_ids)), 200),
  );
  app.openapi(
    post("/feedback", "Say what the engine really cached", wire.feedbackBody, wire.feedbackResult),
    async (c) => {
      const { user_id, agent_id = null, request_id, prompt_tokens, cached_tokens, ttft_ms } = c.req.valid("json");
      const observation = observationOf({ promptTokens: prompt_tokens, cachedTokens: cached_tokens, ttftMs: ttft_ms });
      return c.json(wire.writeFeedback(await memstem.feedback(user_id, agent_id, request_id, observation)), 200);
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: "/requests/{request_id}/explain",
      summary: "Why a prompt hit as far as it did",
      request: { params: explainPath, query: explainQuery },
      responses: responses(explainResult),
    }),
    (c) => {
      const { user_id, agent_id = null } = c.req.valid("query");
      const { explanation, words } = memstem.explain(user_id, agent_id, c.req.valid("param").request_id);
      return c.json(writeExplanation(explanation, words), 200);
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: "/users/{user_id}/index",
      summary: "A user's context index",
      request: { params: wire.userPath, query: wire.indexQuery },
      responses: responses(wire.indexResult),
    }),
    (c) => {
      const { agent_id = null, limit } = c.req.valid("query");
      return c.json(wire.writeIndex(memstem.describeIndex(c.req.valid("param").user_id, agent_id, limit)), 200);
    },
  );
  app.openapi(
    createRoute({
      method: "delete",
      path: "/users/{user_id}",
      summary: "Forget a user",
      request: { params: wire.userPath },
      responses: responses(wire.forgetUserResult),
    }),
    async (c) => {
      const { userId, scopes } = await memstem.forgetUser(c.req.valid("param").user_id);
      return c.json({ user_id: userId, scopes }, 200);
    },
  );
  app.openapi(
    createRoute({
      method: "delete",
      path: "/users/{user_id}/memories/{memory_id}",
      summary: "Forget a memory for good",
      request: { params: wire.memoryPath },
      responses: responses(wire.forgetMemoryResult),
    }),
    async (c) => {
      const { user_id, memory_id } = c.req.valid("param");
      return c.json(wire.writeForgetting(await memstem.forgetMemory(user_id, memory_id)), 200);
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: "/healthz",
      summary: "Whether the service works",
      responses: responses(wire.health),
    }),
    (c) => {
      memstem.ping();
      return c.json({ status: "ok" as const, version: parts.version, source: memstem.sourceName }, 200);
    },
  );

  app.openAPIRegistry.registerPath({
    method: "get",
    path: "/metrics",
    summary: "Counters and gauges for Prometheus",
    responses: { 200: { description: "Text", content: { "text/plain": { schema: wire.metricsText } } } },
  });
  app.get("/metrics", async (c) => c.body(await metrics.text(), 200, { "content-type": metrics.contentType }));

  app.doc31("/openapi.json", {
    openapi: "3.1.0",
    info: {
      title: "memstem",
      version: parts.version,
      description: "Composes prompts from agent memory that an inference engine's prefix cache can reuse.",
    },
  });
  return app;
}

function post<B extends z.ZodType, R extends z.ZodType, S extends 200 | 201 = 200>(
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

function responses<R extends z.ZodType, S extends 200 | 201 = 200>(result: R, status: S = 200 as S) {
  return {
    [status]: { description: "Done", content: { "application/json": { schema: result } } },
    default: { description: "A problem", content: { "application/problem+json": { schema: problemSchema } } },
  } as { [K in S]: { description: string; content: { "application/json": { schema: R } } } } & {
    default: { description: string; content: { "application/problem+json": { schema: typeof problemSchema } } };
  };
}

/** Refuses bytes that are no UTF-8, which would else be replaced: two different texts would become one. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** A body must say that it is JSON, and be text: the validator, which parses it, would skip one that says something else. */
async function requireJson(c: Context, next: () => Promise<void>): Promise<Response | undefined> {
  const type = c.req.header("content-type") ?? "";
  if (!/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type)) {
    const message = "must be application/json";
    return problemResponse(problem(415, `content-type: ${message}`, [{ field: "content-type", message }]));
  }
  try {
    UTF_8.decode(await c.req.arrayBuffer());
  } catch {
    return problemResponse(notJson());
  }
  await next();
  return undefined;
}
