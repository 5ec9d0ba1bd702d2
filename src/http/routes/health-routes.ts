import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import type { MemstemOfAll } from "../../service/library/memstem.js";
import { PRETTY_PARAMETER } from "../contracts/answer-form.js";
import { health } from "../contracts/contracts.js";
import { exampleOf } from "../contracts/examples.js";
import { problemResponses } from "../contracts/openapi-problems.js";
import { described, OPERATIONS } from "../contracts/operations.js";
import type { HttpEnvironment } from "../requests/request.js";

/** What the routes tell of. */
interface HealthParts {
  readonly memstem: Pick<MemstemOfAll, "ping" | "sourceName" | "degraded">;
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
  { memstem, isStopping, version }: HealthParts,
): void {
  const state = () => ({
    status: isStopping() ? ("stopping" as const) : ("ok" as const),
    version,
    source: memstem.sourceName,
  });
  const withParts = () => {
    const now = state();
    const degraded = [...memstem.degraded.list];
    if (degraded.length === 0 || now.status === "stopping") return now;
    return { ...now, status: "degraded" as const, degraded };
  };
  const documented = { parameters: [PRETTY_PARAMETER], security: [] };
  const json = { schema: health };
  const answer = (description: string, example: unknown) => ({
    description,
    content: { "application/json": { ...json, example } },
  });
  app.openapi(
    createRoute({
      method: "get",
      path: "/healthz",
      ...described(OPERATIONS.health),
      ...documented,
      responses: {
        200: answer("The service works, also where a part that it needs fails.", exampleOf(OPERATIONS.health).answer),
        503: { description: "The service is stopping.", content: { "application/json": json } },
        ...problemResponses(OPERATIONS.health.problems),
      },
    }),
    async (c) => {
      await memstem.ping();
      memstem.degraded.worked("store");
      const now = withParts();
      return now.status === "stopping" ? c.json(now, 503) : c.json(now, 200);
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: "/livez",
      ...described(OPERATIONS.live),
      ...documented,
      responses: {
        200: answer("The process works.", exampleOf(OPERATIONS.live).answer),
        ...problemResponses(OPERATIONS.live.problems),
      },
    }),
    (c) => c.json(state(), 200),
  );
}
