import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import * as wire from "./contracts.js";
import { responses } from "./documented-route.js";
import type { HttpEnvironment } from "./environment.js";
import { exportResult, writeExport } from "./export-contract.js";

/** What is held on a user: shown, given out, and forgotten. */
export function addUserRoutes(app: OpenAPIHono<HttpEnvironment>): void {
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
      const index = c.get("memstem").describeIndex(c.req.valid("param").user_id, agent_id, limit);
      return c.json(wire.writeIndex(index), 200);
    },
  );
  app.openapi(
    createRoute({
      method: "get",
      path: "/users/{user_id}/export",
      summary: "Everything held on a user",
      request: { params: wire.userPath },
      responses: responses(exportResult),
    }),
    async (c) =>
      c.json(writeExport(await c.get("memstem").exportUser(c.req.valid("param").user_id, c.req.raw.signal)), 200),
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
      const { userId, scopes } = await c.get("memstem").forgetUser(c.req.valid("param").user_id);
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
      return c.json(wire.writeForgetting(await c.get("memstem").forgetMemory(user_id, memory_id)), 200);
    },
  );
}
