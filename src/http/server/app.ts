import { createRoute, OpenAPIHono } from "@hono/zod-openapi";
import { cors } from "hono/cors";
import { prettyJSON } from "hono/pretty-json";
import type { ApiKeys } from "../../service/base/api-key.js";
import { BusyUserError, InvalidRequestError } from "../../service/base/errors.js";
import type { ChatEngine } from "../../service/chat/chat.js";
import { watchedUpstream } from "../../service/chat/watched-upstream.js";
import { mem0Items, newMemories, observationOf } from "../../service/fields/companion-options.js";
import { fieldIssues } from "../../service/fields/field-issues.js";
import type { MemstemOfAll } from "../../service/library/memstem.js";
import * as wire from "../contracts/contracts.js";
import { post } from "../contracts/documented-route.js";
import { REFUSALS, SECURITY, SECURITY_SCHEMES } from "../contracts/openapi-access.js";
import { access } from "../guards/access.js";
import { Admission } from "../guards/admission.js";
import { receiveBody } from "../guards/body.js";
import type { BodyPace } from "../guards/body-pace.js";
import { type KeyLimits, limitKeys } from "../guards/key-limits.js";
import { closeWhenStopping, limitPending, limitShares } from "../guards/pending.js";
import { PendingRequests } from "../guards/pending-requests.js";
import { securityHeaders } from "../guards/security-headers.js";
import { refuseAmbiguous } from "../guards/unambiguous.js";
import { answerProblem } from "../problems/openai-problem.js";
import { isFault, problemOf, problemSchema } from "../problems/problem.js";
import { RETRY_SOON, type RefusalReason } from "../problems/refusal.js";
import { BodyShareError, SlowBodyError } from "../problems/request-errors.js";
import type { HttpEnvironment } from "../requests/environment.js";
import { BATCH_PATH, isOpenAiPath } from "../requests/paths.js";
import { addBatchRoute } from "../routes/batch-route.js";
import { addChatRoutes } from "../routes/chat-route.js";
import { addExplainRoutes } from "../routes/explain-routes.js";
import { answerUnrouted } from "../routes/unrouted.js";
import { addUserRoutes } from "../routes/user-routes.js";
import { addWebhookRoute } from "../routes/webhook-route.js";
import { Metrics } from "./metrics.js";
import type { RequestLog } from "./request-log.js";

/** What the HTTP surface needs. */
export interface HttpParts {
  readonly memstem: MemstemOfAll;
  readonly keys: ApiKeys;
  /** Other sites whose pages may call; none: no CORS at all. */
  readonly corsOrigins: readonly string[];
  readonly keyLimits: KeyLimits;
  /** Most requests in work at once. */
  readonly maxPending: number;
  /** Milliseconds that a request may wait to be let in. */
  readonly maxLagMs: number;
  /** Whether the service is on its way to its end: it finishes what it has, and takes no more. */
  readonly isStopping: () => boolean;
  /** The engine that chats are sent on to; null for none. */
  readonly chat: ChatEngine | null;
  readonly version: string;
  /** Most bytes of a request body. */
  readonly maxBodyBytes: number;
  /** How fast bodies must come. */
  readonly bodyPace: BodyPace;
  /** Milliseconds that a client may take nothing of an answer which waits for it. */
  readonly answerTimeoutMs: number;
  /** Most bytes of a batch in one JSON document. */
  readonly maxBatchBytes: number;
  /** What Mem0 shows for its events (`POST /webhooks/mem0`); absent: there is no such route. */
  readonly webhookToken?: string | undefined;
  /** Called once per request. */
  readonly onRequest: (entry: RequestLog) => void;
  /** Called with what a handler threw that is nobody's mistake but ours. */
  readonly onFault: (error: unknown) => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

/** What a request counts for that no route was looked up for, as for one that no route was found for. */
const UNROUTED = "/*";

/** What pages of other sites may read of an answer beside what browsers let them. */
const EXPOSED_HEADERS = [
  "x-memstem-request-id",
  "x-memstem-expected-cached-tokens",
  "x-memstem-cached-tokens",
  "x-memstem-depth",
  "x-memstem-warnings",
  "x-memstem-not-composed",
  "x-memstem-error-origin",
];

/** The app, and what stands in front of it where Node serves it. */
export interface HttpSurface {
  readonly app: OpenAPIHono<HttpEnvironment>;
  /** Says when a request gets as far as the app. */
  readonly admission: Admission;
  /** To be called with every time in which the event loop was blocked, in milliseconds. */
  readonly onBlocked: (ms: number) => void;
  /** Milliseconds that a client may take nothing of an answer which waits for it. */
  readonly answerTimeoutMs: number;
}

/** The HTTP surface: `/compose` and its companions, `problem+json` for everything that goes wrong, and its own OpenAPI document. */
export function createApp(parts: HttpParts): HttpSurface {
  const { isStopping, corsOrigins } = parts;
  const app = new OpenAPIHono<HttpEnvironment>({
    defaultHook: (result) => {
      if (!result.success) throw new InvalidRequestError(fieldIssues(result.error));
    },
  });

  const pending = new PendingRequests(parts.maxPending);
  const metrics = new Metrics(parts.memstem, () => pending.count);
  parts.memstem.observe(metrics);
  const onRefused = metrics.refused.bind(metrics);
  const answered = (entry: RequestLog) => {
    metrics.served(entry);
    parts.onRequest(entry);
  };
  const admission = new Admission({
    maxLagMs: parts.maxLagMs,
    maxWaiting: parts.maxPending,
    clock: parts.clock,
    onTurnedAway({ reason, method, ms }) {
      onRefused(reason);
      answered({ method, route: UNROUTED, status: 503, ms });
    },
    onWaited: metrics.waited.bind(metrics),
  });
  app.use(async (c, next) => {
    const { incoming } = c.env ?? {};
    const start = (incoming === undefined ? undefined : admission.cameAt(incoming)) ?? parts.clock();
    await next();
    const { method, routePath } = c.req;
    answered({ method, route: routePath, status: c.res.status, ms: parts.clock() - start, ...c.get("composed") });
  });
  app.use(securityHeaders());
  app.use(closeWhenStopping(isStopping));
  app.use(limitPending({ pending, maxPending: parts.maxPending, isStopping, onRefused }));
  if (corsOrigins.length > 0) {
    const exposeHeaders = ["retry-after", "ratelimit", "ratelimit-policy", ...EXPOSED_HEADERS];
    app.use(cors({ origin: [...corsOrigins], allowMethods: ["GET", "POST", "DELETE"], exposeHeaders }));
  }
  const { memstem, keys, webhookToken } = parts;
  app.use(access({ memstem, keys, corsOrigins, webhookToken, onRefused }));
  app.use(limitKeys(parts.keyLimits, parts.clock, onRefused));
  app.use(limitShares(onRefused));
  app.use(refuseAmbiguous());
  const pretty = prettyJSON({ space: 2 });
  const { maxBodyBytes: maxBytes, bodyPace: pace } = parts;
  app.use(receiveBody({ maxBytes, pace, onTooLarge: () => onRefused("too_large") }));
  // A batch is answered as it is made; an engine's answer goes through as it is.
  app.use((c, next) => (c.req.path === BATCH_PATH || isOpenAiPath(c.req.path) ? next() : pretty(c, next)));
  app.onError((error, c) => {
    const value = problemOf(error);
    if (isFault(error, value)) parts.onFault(error);
    const refusal = refusalOf(error);
    if (refusal === null) return answerProblem(c, value, { error });
    onRefused(refusal);
    // What is left of a body is not waited for.
    const headers = refusal === "user_queue" ? RETRY_SOON : { ...RETRY_SOON, connection: "close" };
    return answerProblem(c, value, { error, headers });
  });
  app.notFound((c) => answerUnrouted(app, c));

  app.openapi(post("/compose", "Compose a prompt", wire.composeBodyWithNulls, wire.composeResult), async (c) => {
    const answer = await c.get("memstem").compose(wire.readCompose(c.req.valid("json")), c.req.raw.signal);
    c.set("composed", {
      requestId: answer.requestId,
      totalTokens: answer.plan.totalTokens,
      expectedCachedTokens: answer.plan.expectedCachedTokens,
      warnings: answer.warnings.map(({ code }) => code),
    });
    return c.json(wire.writeCompose(answer), 200);
  });
  addBatchRoute(app, parts);
  const chat = parts.chat && {
    ...parts.chat,
    upstream: watchedUpstream(parts.chat.upstream, metrics.engineCalled.bind(metrics), parts.clock),
  };
  addChatRoutes(app, {
    ...parts,
    chat,
    isShed: (incoming) => admission.isShed(incoming),
    onNotComposed: metrics.notComposed.bind(metrics),
  });
  if (webhookToken !== undefined) addWebhookRoute(app);
  app.openapi(post("/memories", "Add memories to the source", wire.addBody, wire.addResult, 201), async (c) => {
    const { user_id, agent_id = null, memories, metadata } = c.req.valid("json");
    const added = newMemories(memories, metadata);
    const results = mem0Items(await c.get("memstem").addMemories(user_id, agent_id, added, c.req.raw.signal));
    return c.json({ results }, 201);
  });
  app.openapi(
    post("/evict", "Say that the engine dropped requests' cache", wire.evictBody, wire.evictResult),
    async (c) => c.json(wire.writeEviction(await c.get("memstem").evict(c.req.valid("json").request_ids)), 200),
  );
  app.openapi(
    post("/feedback", "Say what the engine really cached", wire.feedbackBody, wire.feedbackResult),
    async (c) => {
      const { user_id, agent_id = null, request_id, prompt_tokens, cached_tokens, ttft_ms } = c.req.valid("json");
      const observation = observationOf({ promptTokens: prompt_tokens, cachedTokens: cached_tokens, ttftMs: ttft_ms });
      return c.json(
        wire.writeFeedback(await c.get("memstem").feedback(user_id, agent_id, request_id, observation)),
        200,
      );
    },
  );
  addExplainRoutes(app);
  addUserRoutes(app);
  app.openapi(
    createRoute({
      method: "get",
      path: "/healthz",
      summary: "Whether the service works; 503 while it is stopping",
      security: [],
      responses: {
        200: { description: "It does", content: { "application/json": { schema: wire.health } } },
        503: { description: "It is stopping", content: { "application/json": { schema: wire.health } } },
        default: { description: "A problem", content: { "application/problem+json": { schema: problemSchema } } },
      },
    }),
    (c) => {
      parts.memstem.ping();
      const { version } = parts;
      const source = parts.memstem.sourceName;
      if (isStopping()) return c.json({ status: "stopping" as const, version, source }, 503);
      return c.json({ status: "ok" as const, version, source }, 200);
    },
  );

  app.openAPIRegistry.registerPath({
    method: "get",
    path: "/metrics",
    summary: "Counters and gauges for Prometheus",
    responses: {
      200: { description: "Text", content: { "text/plain": { schema: wire.metricsText } } },
      401: REFUSALS[401],
      429: REFUSALS[429],
    },
  });
  app.get("/metrics", async (c) => c.body(await metrics.text(), 200, { "content-type": metrics.contentType }));

  for (const [name, scheme] of Object.entries(SECURITY_SCHEMES)) {
    app.openAPIRegistry.registerComponent("securitySchemes", name, scheme);
  }
  app.doc31("/openapi.json", {
    openapi: "3.1.0",
    security: SECURITY,
    info: {
      title: "memstem",
      version: parts.version,
      description: "Composes prompts from agent memory that an inference engine's prefix cache can reuse.",
    },
  });
  return { app, admission, answerTimeoutMs: parts.answerTimeoutMs, onBlocked: metrics.blocked.bind(metrics) };
}

/** What of the errors is a limit that was met; null for the others. */
function refusalOf(error: unknown): RefusalReason | null {
  if (error instanceof BusyUserError) return "user_queue";
  if (error instanceof BodyShareError) return "body_share";
  return error instanceof SlowBodyError ? "slow_body" : null;
}
