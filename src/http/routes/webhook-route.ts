import type { OpenAPIHono } from "@hono/zod-openapi";
import { z } from "zod";
import * as field from "../../service/fields/fields.js";
import type { MemoryEvent } from "../../service/records/user-records.js";
import words from "../contracts/openapi.json" with { type: "json" };
import { readJson } from "../guards/body.js";
import { type HttpEnvironment, WEBHOOK_PATH } from "../requests/request.js";
import { addRoute, validated } from "./json-route.js";

/** Names of events, and of webhooks that wait for them, vary: `DELETE`, `memory_delete`, `memory:deleted`. */
const eventName = z.string().transform((name) =>
  name
    .trim()
    .toUpperCase()
    .replace(/^MEMORY[\s_:.-]+/, "")
    .replace(/ED$/, "E"),
);
/** As in Mem0's answers, an id may be an integer. */
const memoryId = z.union([field.memoryId, z.int().transform(String).pipe(field.memoryId)]);
const deleted = z
  .looseObject({ event: eventName.pipe(z.literal("DELETE")), id: memoryId })
  .transform(({ id }): MemoryEvent => ({ kind: "deleted", memoryId: id }));
const updated = z
  .looseObject({ event: eventName.pipe(z.literal("UPDATE")), id: memoryId, data: z.looseObject({}).nullish() })
  .transform(({ id, data, ...details }, context): MemoryEvent => {
    const said: Readonly<Record<string, unknown>> = { id, ...details, ...data };
    const { memory } = said;
    const text = field.foundMemoryText.safeParse(memory).data ?? null;
    // A new text replaces the old one even if it cannot be sent.
    const isUnusable = typeof memory === "string" && text === null;
    const end = field.memoryEnd(said) ?? (isUnusable ? { until: field.ENDED } : undefined);
    // An event that ends its memory needs no text.
    if (end === undefined && text === null)
      context.addIssue({
        code: "custom",
        path: memory == null ? [] : ["data", "memory"],
        message: "has neither a text nor an end",
      });
    const origin = field.originIn(said);
    return { kind: "updated", memoryId: id, text, end, ...(origin !== undefined && { origin }) };
  });
const other = z
  .looseObject({
    event: eventName.refine((name) => name !== "DELETE" && name !== "UPDATE", "lacks what belongs to it"),
  })
  .transform(() => null);

/** As the platform sends it; unknown fields and events are accepted. */
const body = z
  .looseObject({ event_details: z.union([deleted, updated, other]) })
  .meta({ id: "Mem0Event", description: "An event of the Mem0 platform. Only DELETE and UPDATE do anything." });

/** `POST /webhooks/mem0`: forgets a deleted memory, and never sends an updated one with its old text again. */
export function addWebhookRoute(app: OpenAPIHono<HttpEnvironment>): void {
  const described = {
    method: "post",
    path: WEBHOOK_PATH,
    body,
    status: 204,
    says: "Success, or nothing to do.",
    security: words.webhookSecurity,
  } as const;
  addRoute(app, "receiveMem0Event", described, async (c) => {
    // Unsafe JSON in unread fields of the memory, such as its metadata, must not reject the event.
    const given = readJson(c, ["event_details", "data"]);
    if (given instanceof Response) return given;
    const { event_details: event } = await validated(body, given.value);
    if (event !== null) await c.get("memprefix").takeMemoryEvent(event, c.req.raw.signal);
    return c.body(null, 204);
  });
}
