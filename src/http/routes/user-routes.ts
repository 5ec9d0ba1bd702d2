import type { OpenAPIHono } from "@hono/zod-openapi";
import { explainQuery, explainResult, requestIds } from "../contracts/explain-contract.js";
import {
  exportOf,
  exportResult,
  forgetMemoryResult,
  forgetUserResult,
  memoryIds,
  userIds,
} from "../contracts/user-contract.js";
import type { HttpEnvironment } from "../requests/request.js";
import { addOfIds } from "./json-route.js";

/** Explains, exports and forgets a user's data. */
export function addUserRoutes(app: OpenAPIHono<HttpEnvironment>): void {
  addOfIds(
    app,
    "explainRequest",
    "get",
    ["/requests/{request_id}/explain", "/request/explain"],
    requestIds,
    explainQuery,
    explainResult,
    ({ userId, agentId, requestId }, c) => c.get("memprefix").explain(userId, agentId ?? null, requestId),
  );
  addOfIds(
    app,
    "exportUser",
    "get",
    ["/users/{user_id}/export", "/user/export"],
    userIds,
    null,
    exportResult,
    async ({ userId }, c) => exportOf(await c.get("memprefix").exportUser(userId, c.req.raw.signal)),
  );
  addOfIds(
    app,
    "forgetUser",
    "delete",
    ["/users/{user_id}", "/user"],
    userIds,
    null,
    forgetUserResult,
    ({ userId }, c) => c.get("memprefix").forgetUser(userId),
  );
  addOfIds(
    app,
    "forgetMemory",
    "delete",
    ["/users/{user_id}/memories/{memory_id}", "/user/memory"],
    memoryIds,
    null,
    forgetMemoryResult,
    ({ userId, memoryId }, c) => c.get("memprefix").forgetMemory(userId, memoryId),
  );
}
