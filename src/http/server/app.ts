/*
 * server: the whole HTTP surface.
 * Enters: the service, its limits, and an engine to proxy to. Leaves: a Hono app with all routes, guards, metrics and the OpenAPI document,
 * and Node's HTTP server for it. Does not listen: the command line does.
 */

import { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { getPath } from "hono/utils/url";
import { BusyUserError, StoreUnavailableError } from "../../service/base/errors.js";
import { type EngineFault, observedUpstream } from "../../service/base/memprefix-observer.js";
import type { ApiKeys } from "../../service/base/tenant.js";
import type { ChatEngine } from "../../service/chat/chat.js";
import { mem0Items } from "../../service/fields/companion-options.js";
import { observationOf } from "../../service/learning/engine-reports.js";
import type { MemprefixOfAll } from "../../service/library/memprefix.js";
import * as wire from "../contracts/compose-contract.js";
import { evictBody, evictResult, feedbackBody, feedbackResult } from "../contracts/engine-report-contract.js";
import { metricsText } from "../contracts/health-contract.js";
import { addOpenApiDocument } from "../contracts/openapi-document.js";
import { operation } from "../contracts/operations.js";
import { addBody, addResult, memoriesQuery, memoriesResult } from "../contracts/user-contract.js";
import { access } from "../guards/access.js";
import { receiveBody } from "../guards/body.js";
import { type Guard, guarded, PASSED, rejectAmbiguous, rejectUpgrade, SECURITY_HEADERS } from "../guards/guard.js";
import { HTTP_LIMITS, type HttpLimits, limitInFlight, rejectWhileStopping, SharedBound } from "../guards/limits.js";
import {
  answerProblem,
  BodyBytesError,
  isFault,
  problemOf,
  RETRY_SOON,
  type RejectionReason,
  SlowBodyError,
} from "../problems/problem.js";
import {
  COMPOSE_PATH,
  entryOf,
  type HttpEnvironment,
  isOpenAiPath,
  namedByPath,
  pathAfterBase,
  type RequestLog,
} from "../requests/request.js";
import { addBatchRoute } from "../routes/batch-route.js";
import { addChatRoutes } from "../routes/chat-route.js";
import { addHealthRoutes } from "../routes/health-routes.js";
import { addGet, addPost } from "../routes/json-route.js";
import { addMcpRoute, type LoadMcp } from "../routes/mcp-route.js";
import { addPages } from "../routes/pages.js";
import { answerUnrouted, passToEngine } from "../routes/unrouted.js";
import { addUsageRoutes } from "../routes/usage-routes.js";
import { addUserRoutes } from "../routes/user-routes.js";
import { addWebhookRoute } from "../routes/webhook-route.js";
import { Metrics } from "./metrics.js";
import type { HttpSurface } from "./node-server.js";

export interface HttpParts {
  readonly memprefix: MemprefixOfAll;
  readonly keys: ApiKeys;
  /** Default: {@link HTTP_LIMITS}. */
  readonly limits?: Partial<HttpLimits>;
  /** Whether the service is shutting down: requests in flight finish, new ones are rejected. */
  readonly isStopping: () => boolean;
  /** The proxy's engine; null for none. */
  readonly chat: ChatEngine | null;
  /** Default: `POST /mcp` is not served. */
  readonly mcp?: LoadMcp;
  readonly version: string;
  /** Token of Mem0's events (`POST /webhooks/mem0`); absent: there is no such route. */
  readonly webhookToken?: string | undefined;
  /** Whether the dashboard may show texts of memories and messages. */
  readonly hasText: boolean;
  readonly onRequest: (entry: RequestLog) => void;
  readonly onFault: (error: unknown) => void;
  /** Called once for each path below `/v1` that the engine does not have. */
  readonly onAbsentRoute?: (path: string) => void;
  /** Called once, for the first chat that names no user. */
  readonly onNobody?: () => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

/** Builds every route, `problem+json` for every error, and the OpenAPI document. */
export function createApp(given: HttpParts): HttpSurface {
  const { degraded } = given.memprefix;
  const parts: HttpParts = {
    ...given,
    onFault(error) {
      if (error instanceof StoreUnavailableError && error.fault !== "busy") degraded.failed("store", error.message);
      given.onFault(error);
    },
  };
  const { isStopping } = parts;
  const app = new OpenAPIHono<HttpEnvironment>({
    getPath: (request) => pathAfterBase(getPath(request)),
  });

  const limits = { ...HTTP_LIMITS, ...parts.limits };
  const inFlight = new SharedBound(limits.maxInFlight);
  const bytes = new SharedBound(limits.maxBytesRead);
  const metrics = new Metrics(parts.memprefix, () => inFlight.used);
  parts.memprefix.observe(metrics);
  parts.memprefix.observe({ composed: () => degraded.worked("store") });
  const onRejected = metrics.rejected.bind(metrics);
  const answered = (entry: RequestLog) => {
    metrics.served(entry);
    parts.onRequest(entry);
  };
  app.use(async (c, next) => {
    const start = parts.clock();
    // Set before the answer's own headers, which override these: reading an answer's headers builds it twice.
    for (const [name, value] of SECURITY_HEADERS) c.env.outgoing.setHeader(name, value);
    await next();
    // Another request on the connection would be lost.
    if (isStopping()) c.res.headers.set("connection", "close");
    const { method, routePath } = c.req;
    answered({ method, route: routePath, status: c.res.status, ms: parts.clock() - start, ...c.get("composed") });
  });
  const failed = (c: Context<HttpEnvironment>, error: unknown) => {
    const value = problemOf(error);
    if (isFault(error, value)) parts.onFault(error);
    const refusal = refusalOf(error);
    if (refusal === null) return answerProblem(c, value, { error });
    onRejected(refusal);
    // The rest of the body is not read.
    const headers = refusal === "user_queue" ? RETRY_SOON : { ...RETRY_SOON, connection: "close" };
    return answerProblem(c, value, { error, headers });
  };
  const { memprefix, keys, webhookToken } = parts;
  // For every path below a base URL, even where no handler reads its names.
  const named: Guard = ({ req }) => {
    if (isOpenAiPath(req.path)) namedByPath(req.url);
    return PASSED;
  };
  const guards = [
    rejectWhileStopping(isStopping, onRejected),
    access({ memprefix, keys, webhookToken, onRejected }),
    rejectUpgrade(),
    rejectAmbiguous(),
    named,
  ];
  app.use(guarded(guards, failed));
  app.use(receiveBody({ limits, bytes, onTooLarge: () => onRejected("too_large") }));
  app.use(guarded([limitInFlight(inFlight, limits.maxInFlight, onRejected)], failed));
  app.onError((error, c) => failed(c, error));
  const composed = async (request: ReturnType<typeof wire.readCompose>, c: Context<HttpEnvironment>) => {
    const answer = await c.get("memprefix").compose(request, c.req.raw.signal);
    c.set("composed", entryOf(answer));
    return answer as never;
  };
  addPost(app, "compose", COMPOSE_PATH, wire.composeWireBody, wire.composeResult, composed, 200, wire.COMPOSED_FIELDS);
  addBatchRoute(app, parts);
  const observer = {
    called: metrics.engineCalled.bind(metrics),
    ended: (failure: EngineFault | null) => {
      if (failure === null) degraded.worked("engine");
      else degraded.failed("engine", failure.reason, failure.cause);
    },
    clock: parts.clock,
  };
  const chat = parts.chat && {
    ...parts.chat,
    upstream: observedUpstream(parts.chat, observer),
  };
  let onNobody = () => {
    onNobody = () => {};
    parts.onNobody?.();
  };
  addChatRoutes(app, {
    ...parts,
    chat,
    onNotComposed: (reason) => {
      metrics.notComposed(reason);
      if (reason === "no_user") onNobody();
    },
    onAbsentRoute: parts.onAbsentRoute ?? (() => {}),
  });
  app.notFound((c) =>
    answerUnrouted(app, c, () => passToEngine(c, chat, { onFault: parts.onFault, silentMs: limits.silentMs })),
  );
  if (webhookToken !== undefined) addWebhookRoute(app);
  addGet(app, "listMemories", "/memories", memoriesQuery, memoriesResult, async (given, c) => ({
    results: mem0Items(await c.get("memprefix").memories(given, c.req.raw.signal)),
  }));
  addPost(
    app,
    "addMemories",
    "/memories",
    addBody,
    addResult,
    (given, c) => c.get("memprefix").addGiven(given, c.req.raw.signal),
    201,
    [],
    ({ waiting }) => waiting > 0,
  );
  addPost(app, "evict", "/evict", evictBody, evictResult, ({ requestIds }, c) => c.get("memprefix").evict(requestIds));
  addPost(app, "feedback", "/feedback", feedbackBody, feedbackResult, (given, c) => {
    const { userId, agentId = null, requestId, model } = given;
    return c.get("memprefix").feedback(userId, agentId, requestId, observationOf(given), model);
  });
  addUserRoutes(app);
  addPages(app);
  addUsageRoutes(app, { hasText: parts.hasText });
  addHealthRoutes(app, parts);
  addMcpRoute(app, { ...parts, load: parts.mcp ?? (async () => ({ missing: "is not served here" })) });

  const describedMetrics = { method: "get", path: "/metrics", says: "Prometheus text format." } as const;
  const text = { "text/plain": metricsText };
  app.openAPIRegistry.registerPath(operation("getMetrics", { ...describedMetrics, answer: text }));
  app.get("/metrics", async (c) => c.body(await metrics.text(), 200, { "content-type": metrics.contentType }));

  addOpenApiDocument(app, { version: parts.version, hasWebhook: webhookToken !== undefined });
  return { app, answerTimeoutMs: limits.answerTimeoutMs };
}

/** The limit that an error stands for; null for other errors. */
function refusalOf(error: unknown): RejectionReason | null {
  if (error instanceof BusyUserError) return "user_queue";
  if (error instanceof BodyBytesError) return "body_bytes";
  return error instanceof SlowBodyError ? "slow_body" : null;
}
