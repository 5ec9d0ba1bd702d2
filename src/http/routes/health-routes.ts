import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { MemprefixOfAll } from "../../service/library/memprefix.js";
import { health } from "../contracts/health-contract.js";
import { jsonOf } from "../contracts/wire-form.js";
import type { HttpEnvironment } from "../requests/request.js";
import { addRoute } from "./json-route.js";

interface HealthParts {
  readonly memprefix: Pick<MemprefixOfAll, "ping" | "sourceName" | "degraded">;
  readonly isStopping: () => boolean;
  readonly version: string;
}

/**
 * Adds `/healthz`, readiness: the database answers, and the service is not stopping; `degraded` where another part fails, without which
 * requests are still served. And `/livez`, liveness: a process must not be restarted because its database is away.
 */
export function addHealthRoutes(
  app: OpenAPIHono<HttpEnvironment>,
  { memprefix, isStopping, version }: HealthParts,
): void {
  const state = () => ({
    status: isStopping() ? ("stopping" as const) : ("ok" as const),
    version,
    source: memprefix.sourceName,
  });
  const withParts = () => {
    const now = state();
    const degraded = [...memprefix.degraded.list];
    if (degraded.length === 0 || now.status === "stopping") return now;
    return { ...now, status: "degraded" as const, degraded };
  };
  const described = { method: "get", answer: health, security: [] } as const;
  const stopping = { description: "The service is stopping.", content: { "application/json": { schema: health } } };
  const answerHealth = async (c: Context<HttpEnvironment>) => {
    // A ping does not show a full or damaged disk; the next write does.
    await memprefix.ping();
    const now = withParts();
    return jsonOf(c, now, now.status === "stopping" ? 503 : 200);
  };
  const says = "The service works, also where a part that it needs fails. Also at `/health`.";
  addRoute(app, "getHealth", { ...described, path: "/healthz", says, others: { 503: stopping } }, answerHealth);
  app.get("/health", answerHealth);
  addRoute(app, "getLiveness", { ...described, path: "/livez", says: "The process works." }, async (c) =>
    jsonOf(c, state(), 200),
  );
}
