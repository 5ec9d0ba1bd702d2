import type { OpenAPIHono } from "@hono/zod-openapi";
import type { MemprefixOfAll } from "../../service/library/memprefix.js";
import { health } from "../contracts/health-contract.js";
import { jsonOf } from "../contracts/wire-form.js";
import type { HttpEnvironment } from "../requests/request.js";
import { addRoute } from "./json-route.js";

/** What the routes report. */
interface HealthParts {
  readonly memprefix: Pick<MemprefixOfAll, "ping" | "sourceName" | "degraded">;
  readonly isStopping: () => boolean;
  readonly version: string;
}

/**
 * Adds `/healthz`, whether requests should be sent here: the database answers, and the service is not stopping. It is `degraded` where
 * another part fails, without which requests are served all the same. And `/livez`, whether the
 * process works: it must not be restarted because the database is away.
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
  const described = { method: "get", answer: health, answerHeaders: [], security: [] } as const;
  const stopping = { description: "The service is stopping.", content: { "application/json": { schema: health } } };
  addRoute(
    app,
    "getHealth",
    {
      ...described,
      path: "/healthz",
      says: "The service works, also where a part that it needs fails.",
      others: { 503: stopping },
    },
    async (c) => {
      // That it answers says nothing of a full or damaged disk: what is stored next does.
      await memprefix.ping();
      const now = withParts();
      return jsonOf(c, now, now.status === "stopping" ? 503 : 200);
    },
  );
  addRoute(app, "getLiveness", { ...described, path: "/livez", says: "The process works." }, async (c) =>
    jsonOf(c, state(), 200),
  );
}
