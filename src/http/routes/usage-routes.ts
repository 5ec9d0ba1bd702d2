import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { TenantUsage } from "../../service/usage/tenant-usage.js";
import * as shown from "../contracts/usage-answers.js";
import * as wire from "../contracts/usage-contract.js";
import { usageRequestQuery, usageRequestResult } from "../contracts/usage-contract.js";
import type { HttpEnvironment } from "../requests/request.js";
import { addGet, addPost } from "./json-route.js";

/** What the routes need. */
export interface UsageParts {
  /** Whether texts of memories and messages may be shown. */
  readonly hasText: boolean;
}

/** Adds `/usage/…`: what the caller's tenant's prompts cost, and why they missed. */
export function addUsageRoutes(app: OpenAPIHono<HttpEnvironment>, { hasText }: UsageParts): void {
  const { usageSummaryQuery, usageSummaryResult, usageMissesQuery, usageMissesResult } = wire;
  addGet(app, "getUsageSummary", "/usage/summary", usageSummaryQuery, usageSummaryResult, async (view, c) => {
    const { usage, priced } = usageOf(c);
    return shown.usageSummary(view.window, await usage.summary(view), priced, c.get("memprefix").cacheState);
  });
  addGet(app, "getUsageMisses", "/usage/misses", usageMissesQuery, usageMissesResult, async (view, c) => {
    const { usage, priced } = usageOf(c);
    return shown.usageMisses(view.window, await usage.misses(view), priced);
  });
  const { usageRequestsQuery, usageRequestsResult } = wire;
  addGet(
    app,
    "listUsageRequests",
    "/usage/requests",
    usageRequestsQuery,
    usageRequestsResult,
    async ({ cursor, limit, ...filter }, c) =>
      shown.usageRequests(await usageOf(c).usage.prompts(filter, shown.pageBefore(cursor), limit)),
  );
  addGet(
    app,
    "getUsageRequest",
    "/usage/request",
    usageRequestQuery,
    usageRequestResult,
    async ({ userId, agentId = null, requestId }, c) => {
      const kept = await usageOf(c).usage.prompt(userId, agentId, requestId);
      return shown.usageRequest(kept, await c.get("memprefix").show(userId, agentId, requestId, hasText), hasText);
    },
  );
  addPost(
    app,
    "addUsageNote",
    "/usage/notes",
    wire.noteBody,
    wire.usageNote,
    async ({ kind, label, at = null, model = null }, c) =>
      shown.shownNote(await usageOf(c).usage.note({ kind, label, at, model })),
    201,
  );
}

/** The usage of the caller's tenant. */
function usageOf(c: Context<HttpEnvironment>): { readonly usage: TenantUsage; readonly priced: shown.Priced } {
  const { usage, recorded } = c.get("memprefix");
  if (usage === null || recorded === null) throw new Error("there is no usage log");
  return { usage, priced: recorded };
}
