import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { z } from "zod";
import * as wire from "../contracts/contracts.js";
import { responses } from "../contracts/documented-route.js";
import { exportResult, writeExport } from "../contracts/export-contract.js";
import type { HttpEnvironment } from "../requests/environment.js";

/*
 * What is held on a user: shown, given out, and forgotten. Each route is there twice, with the ids in its path and with all of them in its
 * query: no client can say `.` or `..` in a path, however it is escaped (WHATWG URL, "dot segments"), and some proxies let no `%2F` through.
 */

type Ctx = Context<HttpEnvironment>;

/** Adds the routes. */
export function addUserRoutes(app: OpenAPIHono<HttpEnvironment>): void {
  const index = (c: Ctx, { user_id, agent_id, limit }: z.output<typeof wire.userIndexQuery>) =>
    c.json(wire.writeIndex(c.get("memstem").describeIndex(user_id, agent_id ?? null, limit)), 200);
  const shown = { method: "get", summary: "A user's context index", responses: responses(wire.indexResult) } as const;
  app.openapi(
    createRoute({
      ...shown,
      path: "/users/{user_id}/index",
      request: { params: wire.userPath, query: wire.indexQuery },
    }),
    (c) => index(c, { ...c.req.valid("param"), ...c.req.valid("query") }),
  );
  app.openapi(createRoute({ ...shown, path: "/user/index", request: { query: wire.userIndexQuery } }), (c) =>
    index(c, c.req.valid("query")),
  );

  const exported = async (c: Ctx, { user_id }: z.output<typeof wire.userPath>) =>
    c.json(writeExport(await c.get("memstem").exportUser(user_id, c.req.raw.signal)), 200);
  const given = { method: "get", summary: "Everything held on a user", responses: responses(exportResult) } as const;
  app.openapi(createRoute({ ...given, path: "/users/{user_id}/export", request: { params: wire.userPath } }), (c) =>
    exported(c, c.req.valid("param")),
  );
  app.openapi(createRoute({ ...given, path: "/user/export", request: { query: wire.userQuery } }), (c) =>
    exported(c, c.req.valid("query")),
  );

  const forgetUser = async (c: Ctx, { user_id }: z.output<typeof wire.userPath>) => {
    const { userId, scopes } = await c.get("memstem").forgetUser(user_id);
    return c.json({ user_id: userId, scopes }, 200);
  };
  const userForgotten = {
    method: "delete",
    summary: "Forget a user",
    responses: responses(wire.forgetUserResult),
  } as const;
  app.openapi(createRoute({ ...userForgotten, path: "/users/{user_id}", request: { params: wire.userPath } }), (c) =>
    forgetUser(c, c.req.valid("param")),
  );
  app.openapi(createRoute({ ...userForgotten, path: "/user", request: { query: wire.userQuery } }), (c) =>
    forgetUser(c, c.req.valid("query")),
  );

  const forgetMemory = async (c: Ctx, { user_id, memory_id }: z.output<typeof wire.memoryPath>) =>
    c.json(wire.writeForgetting(await c.get("memstem").forgetMemory(user_id, memory_id)), 200);
  const memoryForgotten = {
    method: "delete",
    summary: "Forget a memory for good",
    responses: responses(wire.forgetMemoryResult),
  } as const;
  app.openapi(
    createRoute({
      ...memoryForgotten,
      path: "/users/{user_id}/memories/{memory_id}",
      request: { params: wire.memoryPath },
    }),
    (c) => forgetMemory(c, c.req.valid("param")),
  );
  app.openapi(createRoute({ ...memoryForgotten, path: "/user/memory", request: { query: wire.memoryQuery } }), (c) =>
    forgetMemory(c, c.req.valid("query")),
  );
}
