import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import { z } from "zod";
import * as field from "../../service/fields/fields.js";
import type { MemoryEvent } from "../../service/records/memory-events.js";
import { exampleOf } from "../contracts/examples.js";
import { problemResponses } from "../contracts/openapi-problems.js";
import { WEBHOOK_SECURITY } from "../contracts/openapi-security.js";
import { described, OPERATIONS } from "../contracts/operations.js";
import { requireJson } from "../guards/body.js";
import { problemSchema } from "../problems/problem.js";
import { type HttpEnvironment, WEBHOOK_PATH } from "../requests/request.js";

const deleted = z
  .looseObject({ event: z.literal("DELETE"), id: field.memoryId })
  .transform(({ id }): MemoryEvent => ({ kind: "deleted", memoryId: id }));
const updated = z
  .looseObject({
    event: z.literal("UPDATE"),
    id: field.memoryId,
    data: z.looseObject({ memory: field.foundMemoryText }),
  })
  .transform(
    ({ id, data }): MemoryEvent => ({ kind: "updated", memoryId: id, text: data.memory, end: field.memoryEnd(data) }),
  );
const other = z
  .looseObject({ event: z.string().regex(/^(?!(DELETE|UPDATE)$)/, "lacks what belongs to it") })
  .transform(() => null);

/** As the platform sends it; unknown fields and events are accepted. */
const body = z
  .looseObject({ event_details: z.union([deleted, updated, other]) })
  .meta({ id: "Mem0Event", description: "An event of the Mem0 platform. Only DELETE and UPDATE do anything." });

/** `POST /webhooks/mem0`: a memory that Mem0 deleted is forgotten, one that it updated is never sent with its old text again. */
export function addWebhookRoute(app: OpenAPIHono<HttpEnvironment>): void {
  const route = createRoute({
    method: "post",
    path: WEBHOOK_PATH,
    ...described(OPERATIONS.webhook),
    middleware: requireJson,
    security: WEBHOOK_SECURITY,
    request: {
      body: {
        required: true,
        content: { "application/json": { schema: body, example: exampleOf(OPERATIONS.webhook).request } },
      },
    },
    responses: {
      204: { description: "Success, or nothing to do." },
      401: {
        description: "The request does not have the webhook's token.",
        content: { "application/problem+json": { schema: problemSchema } },
      },
      ...problemResponses(OPERATIONS.webhook.problems),
    },
  });
  app.openapi(route, async (c) => {
    const { event_details: event } = c.req.valid("json");
    if (event !== null) await c.get("memstem").takeMemoryEvent(event, c.req.raw.signal);
    return c.body(null, 204);
  });
}
