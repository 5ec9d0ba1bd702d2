/*
 * server: the whole HTTP surface, put together.
 * Enters: the service, its limits, and an engine to proxy to. Leaves: a Hono app with every route, guard and metric and its OpenAPI
 * document, and Node's HTTP server in front of it. Listens nowhere itself: the command line does that.
 */

import { OpenAPIHono } from "@hono/zod-openapi";
import { cors } from "hono/cors";
import { prettyJSON } from "hono/pretty-json";
import { getPath } from "hono/utils/url";
import type { ApiKeys } from "../../service/base/api-key.js";
import { BusyUserError, InvalidRequestError, StoreUnavailableError } from "../../service/base/errors.js";
import type { EngineCall } from "../../service/base/memstem-observer.js";
import type { ChatEngine } from "../../service/chat/chat.js";
import { observedUpstream } from "../../service/chat/observed-upstream.js";
import { mem0Items, newMemories, observationOf } from "../../service/fields/companion-options.js";
import { fieldIssues } from "../../service/fields/read-options.js";
import type { MemstemOfAll } from "../../service/library/memstem.js";
import type { AlertRule } from "../../service/usage/alert-rules.js";
import type { Alert } from "../../service/usage/usage-alerts.js";
import * as wire from "../contracts/contracts.js";
import { post } from "../contracts/documented-route.js";
import { addOpenApiDocument } from "../contracts/openapi-document.js";
import { headerReferences, RATE_HEADERS } from "../contracts/openapi-headers.js";
import { problemResponses } from "../contracts/openapi-problems.js";
import { described, OPERATIONS } from "../contracts/operations.js";
import { access } from "../guards/access.js";
import { Admission } from "../guards/admission.js";
import { BODY_RATE, type BodyRate, receiveBody } from "../guards/body.js";
import { guarded } from "../guards/guard.js";
import {
  closeWhenStopping,
  type KeyLimits,
  limitKeys,
  limitPending,
  limitShares,
  PendingRequests,
} from "../guards/limits.js";
import { rejectAmbiguous } from "../guards/safe-input.js";
import { securityHeaders } from "../guards/security-headers.js";
import { answerProblem } from "../problems/openai-problem.js";
import { BodyShareError, isFault, problemOf, SlowBodyError } from "../problems/problem.js";
import { RETRY_SOON, type RejectionReason } from "../problems/rejection.js";
import { namedByPath, pathBehindBase } from "../requests/base-url.js";
import {
  BATCH_PATH,
  COMPOSE_PATH,
  type GuardedRequest,
  type HttpEnvironment,
  isOpenAiPath,
  type RequestLog,
  UNROUTED,
} from "../requests/request.js";
import { addBatchRoute } from "../routes/batch-route.js";
import { addChatRoutes } from "../routes/chat-route.js";
import { addDashboardPage } from "../routes/dashboard-page.js";
import { addExplainRoutes } from "../routes/explain-routes.js";
import { addHealthRoutes } from "../routes/health-routes.js";
import { passToEngine } from "../routes/passed-route.js";
import { answerUnrouted } from "../routes/unrouted.js";
import { addUsageRoutes } from "../routes/usage-routes.js";
import { addUserRoutes } from "../routes/user-routes.js";
import { addWebhookRoute } from "../routes/webhook-route.js";
import { composeOver, DirectCompose } from "./direct-compose.js";
import { Metrics } from "./metrics.js";

/** As long as a page in the background of a phone may stand still; then its place among the pending requests is needed. */
const ANSWER_TIMEOUT_MS = 120_000;

/** What the HTTP surface needs. */
export interface HttpParts {
  readonly memstem: MemstemOfAll;
  readonly keys: ApiKeys;
  /** Other origins whose pages may call; none: no CORS. */
  readonly corsOrigins: readonly string[];
  readonly keyLimits: KeyLimits;
  /** Most requests in flight, and most that wait for admission. */
  readonly maxPending: number;
  /** Milliseconds that a request may wait for admission. */
  readonly maxLagMs: number;
  /** Whether the service is shutting down: requests in flight finish, new ones are rejected. */
  readonly isStopping: () => boolean;
  /** The engine behind the proxy; null for none. */
  readonly chat: ChatEngine | null;
  readonly version: string;
  /** Most bytes of a request body. */
  readonly maxBodyBytes: number;
  /** The minimum data rate of bodies. Default: {@link BODY_RATE}. */
  readonly bodyRate?: BodyRate;
  /** Milliseconds that a client may leave an answer unread. Default: {@link ANSWER_TIMEOUT_MS}. */
  readonly answerTimeoutMs?: number;
  /** Token that Mem0's events carry (`POST /webhooks/mem0`); absent: there is no such route. */
  readonly webhookToken?: string | undefined;
  /** How what prompts cost is recorded; null or absent: it is not. */
  readonly usage?: UsageSettings | null;
  /** Called once per request. */
  readonly onRequest: (entry: RequestLog) => void;
  /** Called with internal faults. */
  readonly onFault: (error: unknown) => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

/** How what prompts cost is recorded and shown. */
export interface UsageSettings {
  /** Whether texts of memories and messages may be shown. */
  readonly hasText: boolean;
  readonly rules: readonly AlertRule[];
  /** Called when an alert begins or ends; gives whether it was told of, or need not be any more. */
  readonly onAlert: (alert: Alert) => Promise<boolean>;
}

/** Answer headers that pages of other origins may read, beside those that CORS always allows. */
const EXPOSED_HEADERS = [
  "x-memstem-request-id",
  "x-memstem-expected-cached-tokens",
  "x-memstem-cached-tokens",
  "x-memstem-depth",
  "x-memstem-worker",
  "x-memstem-warnings",
  "x-memstem-source-failure",
  "x-memstem-not-composed",
  "x-memstem-error-origin",
];

/** The app, and what Node's server puts in front of it. */
export interface HttpSurface {
  readonly app: OpenAPIHono<HttpEnvironment>;
  /** Serves `POST /compose` in the app's stead; null where its answers need what only the app adds. */
  readonly direct: DirectCompose | null;
  /** Decides when a request reaches the app. */
  readonly admission: Admission;
  /** Call it with each sample of the event loop's delay, in milliseconds. */
  readonly onDelayed: (ms: number) => void;
  /** Milliseconds that a client may leave an answer unread. */
  readonly answerTimeoutMs: number;
}

/** The HTTP surface: every route, `problem+json` for every error, and its OpenAPI document. */
export function createApp(given: HttpParts): HttpSurface {
  const { degraded } = given.memstem;
  const parts: HttpParts = {
    ...given,
    onFault(error) {
      if (error instanceof StoreUnavailableError && error.fault !== "busy") degraded.failed("store", error.message);
      given.onFault(error);
    },
  };
  const { isStopping, corsOrigins } = parts;
  const app = new OpenAPIHono<HttpEnvironment>({
    getPath: (request) => pathBehindBase(getPath(request)),
    defaultHook: (result) => {
      if (!result.success) throw new InvalidRequestError(fieldIssues(result.error));
    },
  });

  const pending = new PendingRequests(parts.maxPending);
  const metrics = new Metrics(parts.memstem, () => pending.count);
  parts.memstem.observe(metrics);
  parts.memstem.observe({ composed: () => degraded.worked("store") });
  if (parts.usage != null) {
    const { rules, onAlert } = parts.usage;
    const alerted = (alert: Alert) => {
      metrics.alerted(alert);
      return onAlert(alert);
    };
    parts.memstem.recordUsage({ rules, onAlert: alerted, onFault: parts.onFault });
  }
  const onRejected = metrics.rejected.bind(metrics);
  const answered = (entry: RequestLog) => {
    metrics.served(entry);
    parts.onRequest(entry);
  };
  const admission = new Admission({
    maxLagMs: parts.maxLagMs,
    maxWaiting: parts.maxPending,
    clock: parts.clock,
    onRejected({ reason, method, ms }) {
      onRejected(reason);
      answered({ method, route: UNROUTED, status: 503, ms });
    },
    onWaited: metrics.waited.bind(metrics),
  });
  const arrivedAt = (incoming: object | undefined) =>
    (incoming === undefined ? undefined : admission.cameAt(incoming)) ?? parts.clock();
  app.use(async (c, next) => {
    const start = arrivedAt(c.env?.incoming);
    await next();
    const { method, routePath } = c.req;
    answered({ method, route: routePath, status: c.res.status, ms: parts.clock() - start, ...c.get("composed") });
  });
  app.use(securityHeaders());
  app.use(closeWhenStopping(isStopping));
  const guardPending = limitPending({ pending, maxPending: parts.maxPending, isStopping, onRejected });
  app.use(guarded(guardPending));
  if (corsOrigins.length > 0) {
    const exposeHeaders = ["retry-after", "ratelimit", "ratelimit-policy", ...EXPOSED_HEADERS];
    app.use(cors({ origin: [...corsOrigins], allowMethods: ["GET", "POST", "DELETE"], exposeHeaders }));
  }
  const { memstem, keys, webhookToken } = parts;
  const guards = [
    access({ memstem, keys, corsOrigins, webhookToken, onRejected }),
    limitKeys(parts.keyLimits, parts.clock, onRejected),
    limitShares(onRejected),
    rejectAmbiguous(),
  ];
  for (const guard of guards) app.use(guarded(guard));
  // On every path below a base URL, also where nobody asks whom it names.
  app.use((c, next) => {
    if (isOpenAiPath(c.req.path)) namedByPath(c.req.url);
    return next();
  });
  const pretty = prettyJSON({ space: 2 });
  const { maxBodyBytes: maxBytes, bodyRate: rate = BODY_RATE, clock, onFault } = parts;
  const body = { maxBytes, rate, clock, onTooLarge: () => onRejected("too_large") };
  app.use(receiveBody(body));
  // A batch is streamed; an engine's answer is sent unmodified.
  app.use((c, next) => (c.req.path === BATCH_PATH || isOpenAiPath(c.req.path) ? next() : pretty(c, next)));
  const failed = (c: GuardedRequest, error: unknown) => {
    const value = problemOf(error);
    if (isFault(error, value)) parts.onFault(error);
    const refusal = refusalOf(error);
    if (refusal === null) return answerProblem(c, value, { error });
    onRejected(refusal);
    // The rest of the body is not read.
    const headers = refusal === "user_queue" ? RETRY_SOON : { ...RETRY_SOON, connection: "close" };
    return answerProblem(c, value, { error, headers });
  };
  app.onError((error, c) => failed(c, error));
  app.openapi(post(COMPOSE_PATH, OPERATIONS.compose, wire.composeBodyWithNulls, wire.composeResult), async (c) => {
    const { json, entry } = await composeOver(c.get("memstem"), c.req.valid("json"), c.req.raw.signal);
    c.set("composed", entry);
    return c.json(json, 200);
  });
  const all = [guardPending, ...guards];
  // CORS is the app's.
  const isDirect = corsOrigins.length === 0;
  const direct = isDirect
    ? new DirectCompose({ guards: all, body, isStopping, arrivedAt, clock, failed, answered, onFault })
    : null;
  addBatchRoute(app, { ...parts, bodyRate: rate });
  const engineCalled = (call: EngineCall) => {
    metrics.engineCalled(call);
    if (call.failure !== undefined) degraded.failed("engine", call.failure.reason, call.failure.cause);
    else if (call.outcome !== "aborted") degraded.worked("engine");
  };
  const chat = parts.chat && {
    ...parts.chat,
    upstream: observedUpstream(parts.chat.upstream, engineCalled, parts.clock),
  };
  addChatRoutes(app, {
    ...parts,
    chat,
    isShed: (incoming) => admission.isShed(incoming),
    onNotComposed: metrics.notComposed.bind(metrics),
  });
  app.notFound((c) => answerUnrouted(app, c, () => passToEngine(c, chat, parts.onFault)));
  if (webhookToken !== undefined) addWebhookRoute(app);
  app.openapi(post("/memories", OPERATIONS.addMemories, wire.addBody, wire.addResult, 201), async (c) => {
    const { user_id, agent_id = null, memories, metadata } = c.req.valid("json");
    const added = newMemories(memories, metadata);
    const results = mem0Items(await c.get("memstem").addMemories(user_id, agent_id, added, c.req.raw.signal));
    return c.json({ results }, 201);
  });
  app.openapi(post("/evict", OPERATIONS.evict, wire.evictBody, wire.evictResult), async (c) =>
    c.json(wire.writeEviction(await c.get("memstem").evict(c.req.valid("json").request_ids)), 200),
  );
  app.openapi(post("/feedback", OPERATIONS.feedback, wire.feedbackBody, wire.feedbackResult), async (c) => {
    const { user_id, agent_id = null, request_id, prompt_tokens, cached_tokens, ttft_ms, model } = c.req.valid("json");
    const observation = observationOf({ promptTokens: prompt_tokens, cachedTokens: cached_tokens, ttftMs: ttft_ms });
    const reported = await c.get("memstem").feedback(user_id, agent_id, request_id, observation, model);
    return c.json(wire.writeFeedback(reported), 200);
  });
  addExplainRoutes(app);
  addUserRoutes(app);
  addDashboardPage(app);
  addUsageRoutes(app, { hasText: parts.usage?.hasText ?? false, isStopping });
  addHealthRoutes(app, parts);

  app.openAPIRegistry.registerPath({
    method: "get",
    path: "/metrics",
    ...described(OPERATIONS.metrics),
    responses: {
      200: {
        description: "Prometheus text format.",
        headers: headerReferences(RATE_HEADERS),
        content: { "text/plain": { schema: wire.metricsText } },
      },
      ...problemResponses(OPERATIONS.metrics.problems),
    },
  });
  app.get("/metrics", async (c) => c.body(await metrics.text(), 200, { "content-type": metrics.contentType }));

  addOpenApiDocument(app, { version: parts.version, hasWebhook: webhookToken !== undefined });
  const onDelayed = metrics.delayed.bind(metrics);
  const { answerTimeoutMs = ANSWER_TIMEOUT_MS } = parts;
  return { app, direct, admission, answerTimeoutMs, onDelayed };
}

/** The limit that an error stands for; null for other errors. */
function refusalOf(error: unknown): RejectionReason | null {
  if (error instanceof BusyUserError) return "user_queue";
  if (error instanceof BodyShareError) return "body_share";
  return error instanceof SlowBodyError ? "slow_body" : null;
}
