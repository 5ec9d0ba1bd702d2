import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { Memstem } from "../../service/library/memstem.js";
import type { TenantUsage } from "../../service/usage/tenant-usage.js";
import { bodiless, post } from "../contracts/documented-route.js";
import { OPERATIONS } from "../contracts/operations.js";
import * as wire from "../contracts/usage-contract.js";
import * as json from "../contracts/usage-json.js";
import { usageRequestQuery, usageRequestResult, writeUsageRequest } from "../contracts/usage-request-contract.js";
import { UsageOffError } from "../problems/usage-off-error.js";
import type { HttpEnvironment } from "../requests/request.js";
import { addUsageEvents } from "./usage-events.js";

/** What the routes need. */
export interface UsageParts {
  /** Whether texts of memories and messages may be shown. */
  readonly hasText: boolean;
  readonly isStopping: () => boolean;
}

/** Adds `/usage/…`: what the caller's tenant's prompts cost, and why they missed. */
export function addUsageRoutes(app: OpenAPIHono<HttpEnvironment>, parts: UsageParts): void {
  app.openapi(
    bodiless(
      "get",
      "/usage/summary",
      OPERATIONS.usageSummary,
      { query: wire.usageSummaryQuery },
      wire.usageSummaryResult,
    ),
    async (c) => {
      const { usage, priced } = usageOf(c);
      const { pretty: _, ...view } = c.req.valid("query");
      return c.json(json.writeUsageSummary(view.window, await usage.summary(view), priced), 200);
    },
  );
  app.openapi(
    bodiless("get", "/usage/misses", OPERATIONS.usageMisses, { query: wire.usageMissesQuery }, wire.usageMissesResult),
    async (c) => {
      const { usage, priced } = usageOf(c);
      const { pretty: _, ...view } = c.req.valid("query");
      return c.json(json.writeUsageMisses(view.window, await usage.misses(view), priced), 200);
    },
  );
  app.openapi(
    bodiless(
      "get",
      "/usage/requests",
      OPERATIONS.usageRequests,
      { query: wire.usageRequestsQuery },
      wire.usageRequestsResult,
    ),
    async (c) => {
      const { usage } = usageOf(c);
      const { model, engine, layout, cause, user_id, agent_id, conversation_id, cursor, limit } = c.req.valid("query");
      const of = { userId: user_id, agentId: agent_id, conversationId: conversation_id };
      const page = await usage.prompts({ model, engine, layout, cause, ...of }, json.readCursor(cursor), limit);
      return c.json(json.writeUsageRequests(page), 200);
    },
  );
  app.openapi(
    bodiless("get", "/usage/request", OPERATIONS.usageRequest, { query: usageRequestQuery }, usageRequestResult),
    async (c) => {
      const { usage } = usageOf(c);
      const { user_id, agent_id = null, request_id } = c.req.valid("query");
      const kept = await usage.prompt(user_id, agent_id, request_id);
      const shown = await c.get("memstem").show(user_id, agent_id, request_id, parts.hasText);
      return c.json(writeUsageRequest(kept, shown, parts.hasText), 200);
    },
  );
  app.openapi(
    bodiless("get", "/usage/users", OPERATIONS.usageUsers, { query: wire.usageUsersQuery }, wire.usageUsersResult),
    async (c) => {
      const { usage, priced } = usageOf(c);
      const { order, limit } = c.req.valid("query");
      return c.json(json.writeUsageUsers(await usage.users(order, limit), priced), 200);
    },
  );
  const ofConversations = { query: wire.usageConversationsQuery };
  app.openapi(
    bodiless(
      "get",
      "/usage/conversations",
      OPERATIONS.usageConversations,
      ofConversations,
      wire.usageConversationsResult,
    ),
    async (c) => {
      const { usage, priced } = usageOf(c);
      const { user_id, agent_id, order, limit } = c.req.valid("query");
      const found = await usage.conversations({ userId: user_id, agentId: agent_id }, order, limit);
      return c.json(json.writeUsageConversations(found, priced), 200);
    },
  );
  const ofConversation = { query: wire.usageConversationQuery };
  app.openapi(
    bodiless("get", "/usage/conversation", OPERATIONS.usageConversation, ofConversation, wire.usageConversationResult),
    async (c) => {
      const { usage, priced } = usageOf(c);
      const { user_id, agent_id = null, conversation_id, cursor, limit } = c.req.valid("query");
      const before = json.readCursor(cursor);
      const found = await usage.conversation(user_id, agent_id, conversation_id, before, limit);
      return c.json(json.writeUsageConversation(found, priced), 200);
    },
  );
  app.openapi(
    bodiless("get", "/usage/alerts", OPERATIONS.usageAlerts, { query: wire.usageAlertsQuery }, wire.usageAlertsResult),
    async (c) => c.json(json.writeUsageAlerts(usageOf(c).usage.alerts), 200),
  );
  app.openapi(post("/usage/notes", OPERATIONS.usageNotes, wire.noteBody, wire.usageNote, 201), async (c) => {
    const { kind, label, at = null, model = null } = c.req.valid("json");
    return c.json(json.writeUsageNote(await usageOf(c).usage.note({ kind, label, at, model })), 201);
  });
  addUsageEvents(app, { usageOf: (c) => usageOf(c).usage, isStopping: parts.isStopping });
}

/** The usage of the caller's tenant. Throws {@link UsageOffError}. */
function usageOf(c: Context<HttpEnvironment>): { readonly usage: TenantUsage; readonly priced: json.Priced } {
  const memstem: Memstem = c.get("memstem");
  const { usage, recorded } = memstem;
  if (usage === null || recorded === null) throw new UsageOffError();
  return { usage, priced: recorded };
}
