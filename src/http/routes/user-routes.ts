import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { z } from "zod";
import * as wire from "../contracts/contracts.js";
import { bodiless } from "../contracts/documented-route.js";
import { exportResult, writeExport } from "../contracts/export-contract.js";
import { OPERATIONS } from "../contracts/operations.js";
import type { HttpEnvironment } from "../requests/request.js";

/*
 * A user's data: described, exported, forgotten. Each route exists twice, with the ids in the path and in the query: an id `.` or `..`
 * cannot stand in a path, however it is escaped (WHATWG URL, "dot segments"), and some proxies reject `%2F`.
 */

type Ctx = Context<HttpEnvironment>;

/** Adds the routes. */
export function addUserRoutes(app: OpenAPIHono<HttpEnvironment>): void {
  const { userPath, userQuery, memoryPath, memoryQuery, indexResult, forgetUserResult, forgetMemoryResult } = wire;

  const index = async (c: Ctx, { user_id, agent_id, limit }: z.output<typeof wire.userIndexQuery>) =>
    c.json(wire.writeIndex(await c.get("memstem").describeIndex(user_id, agent_id ?? null, limit)), 200);
  const indexOf = { params: userPath, query: wire.indexQuery };
  app.openapi(bodiless("get", "/users/{user_id}/index", OPERATIONS.index, indexOf, indexResult), (c) =>
    index(c, { ...c.req.valid("param"), ...c.req.valid("query") }),
  );
  const indexBy = { query: wire.userIndexQuery };
  app.openapi(bodiless("get", "/user/index", OPERATIONS.indexByQuery, indexBy, indexResult), (c) =>
    index(c, c.req.valid("query")),
  );

  const exported = async (c: Ctx, { user_id }: z.output<typeof userPath>) =>
    c.json(writeExport(await c.get("memstem").exportUser(user_id, c.req.raw.signal)), 200);
  app.openapi(
    bodiless("get", "/users/{user_id}/export", OPERATIONS.exportUser, { params: userPath }, exportResult),
    (c) => exported(c, c.req.valid("param")),
  );
  app.openapi(bodiless("get", "/user/export", OPERATIONS.exportUserByQuery, { query: userQuery }, exportResult), (c) =>
    exported(c, c.req.valid("query")),
  );

  const forgetUser = async (c: Ctx, { user_id }: z.output<typeof userPath>) => {
    const { userId, scopes } = await c.get("memstem").forgetUser(user_id);
    return c.json({ user_id: userId, scopes }, 200);
  };
  app.openapi(
    bodiless("delete", "/users/{user_id}", OPERATIONS.forgetUser, { params: userPath }, forgetUserResult),
    (c) => forgetUser(c, c.req.valid("param")),
  );
  app.openapi(bodiless("delete", "/user", OPERATIONS.forgetUserByQuery, { query: userQuery }, forgetUserResult), (c) =>
    forgetUser(c, c.req.valid("query")),
  );

  const forgetMemory = async (c: Ctx, { user_id, memory_id }: z.output<typeof memoryPath>) =>
    c.json(wire.writeForgetting(await c.get("memstem").forgetMemory(user_id, memory_id)), 200);
  const memoryAt = "/users/{user_id}/memories/{memory_id}";
  app.openapi(bodiless("delete", memoryAt, OPERATIONS.forgetMemory, { params: memoryPath }, forgetMemoryResult), (c) =>
    forgetMemory(c, c.req.valid("param")),
  );
  app.openapi(
    bodiless("delete", "/user/memory", OPERATIONS.forgetMemoryByQuery, { query: memoryQuery }, forgetMemoryResult),
    (c) => forgetMemory(c, c.req.valid("query")),
  );
}
