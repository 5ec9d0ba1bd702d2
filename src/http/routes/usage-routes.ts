import type { OpenAPIHono } from "@hono/zod-openapi";
import * as shown from "../contracts/usage-answers.js";
import * as wire from "../contracts/usage-contract.js";
import { usageRequestQuery, usageRequestResult } from "../contracts/usage-contract.js";
import type { HttpEnvironment } from "../requests/request.js";
import { addGet } from "./json-route.js";

export interface UsageParts {
  /** Whether texts of memories and messages may be shown. */
  readonly hasText: boolean;
}

/** Adds `/usage/…`: costs of the tenant's prompts, and why they missed. */
export function addUsageRoutes(app: OpenAPIHono<HttpEnvironment>, { hasText }: UsageParts): void {
  const { usageSummaryQuery, usageSummaryResult } = wire;
  addGet(app, "getUsageSummary", "/usage/summary", usageSummaryQuery, usageSummaryResult, async (view, c) => {
    const { usage, cacheState } = c.get("memprefix");
    const [sums, misses] = await Promise.all([usage.summary(view), usage.misses(view)]);
    return shown.usageSummary(view.window, sums, misses, usage, cacheState);
  });
  const { usageRequestsQuery, usageRequestsResult } = wire;
  addGet(
    app,
    "listUsageRequests",
    "/usage/requests",
    usageRequestsQuery,
    usageRequestsResult,
    async ({ cursor, limit, ...filter }, c) =>
      shown.usageRequests(await c.get("memprefix").usage.page(filter, shown.pageBefore(cursor), limit)),
  );
  addGet(
    app,
    "getUsageRequest",
    "/usage/request",
    usageRequestQuery,
    usageRequestResult,
    async ({ userId, agentId = null, requestId }, c) => {
      const memprefix = c.get("memprefix");
      const figures = await memprefix.usage.prompt(userId, agentId, requestId);
      return shown.usageRequest(figures, await memprefix.show(userId, agentId, requestId, hasText), hasText);
    },
  );
}
