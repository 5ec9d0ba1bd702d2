import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import { z } from "zod";
import * as field from "../../service/fields/fields.js";
import type { MemoryEvent } from "../../service/records/memory-events.js";
import { requireJson } from "../guards/body.js";
import { problemSchema } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/environment.js";
import { WEBHOOK_PATH } from "../requests/paths.js";

const deleted = z
  .looseObject({ event: z.literal("DELETE"), id: field.memoryId })
  .transform(({ id }): MemoryEvent => ({ kind: "deleted", memoryId: id }));
const updated = z
  .looseObject({
    event: z.literal("UPDATE"),
    id: field.memoryId,
    data: z.looseObject({ memory: field.foundMemoryText }),
  })
  .transform(({ id, data }): MemoryEvent => ({ kind: "updated", memoryId: id, text: data.memory }));
const other = z
  .looseObject({ event: z.string().regex(/^(?!(DELETE|UPDATE)$)/, "lacks what belongs to it") })
  .transform(() => null);

/** As the platform sends it; fields and events that come later are let pass. */
const body = z
  .looseObject({ event_details: z.union([deleted, updated, other]) })
  .meta({ id: "Mem0Event", description: "An event of the Mem0 platform. Only DELETE and UPDATE do anything." });
/** In the address, because nothing else can be set where webhooks are made. */
const query = z.looseObject({ token: z.string().optional().meta({ description: "`MEMSTEM_WEBHOOK_TOKEN`" }) });

/** `POST /webhooks/mem0`: what Mem0 deleted is forgotten, and what it updated is never sent with its old text again. */
export function addWebhookRoute(app: OpenAPIHono<HttpEnvironment>): void {
  const problems = { "application/problem+json": { schema: problemSchema } };
  const route = createRoute({
    method: "post",
    path: WEBHOOK_PATH,
    summary: "Mem0 says what happened to a memory",
    middleware: requireJson,
    security: [{ bearer: [] }, {}],
    request: { query, body: { required: true, content: { "application/json": { schema: body } } } },
    responses: {
      204: { description: "Done, or nothing was to be done" },
      default: { description: "A problem", content: problems },
    },
  });
  app.openapi(route, async (c) => {
    const { event_details: event } = c.req.valid("json");
    if (event !== null) await c.get("memstem").takeMemoryEvent(event, c.req.raw.signal);
    return c.body(null, 204);
  });
}
