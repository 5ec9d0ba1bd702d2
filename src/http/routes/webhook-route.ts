import type { OpenAPIHono } from "@hono/zod-openapi";
import { z } from "zod";
import * as field from "../../service/fields/fields.js";
import type { MemoryEvent } from "../../service/records/user-records.js";
import words from "../contracts/openapi.json" with { type: "json" };
import { readJson } from "../guards/body.js";
import { type HttpEnvironment, WEBHOOK_PATH } from "../requests/request.js";
import { addRoute, validated } from "./json-route.js";

/** What happened, as events are named, and webhooks that wait for them: `DELETE`, `memory_delete`, `memory:deleted`. */
const eventName = z.string().transform((name) =>
  name
    .trim()
    .toUpperCase()
    .replace(/^MEMORY[\s_:.-]+/, "")
    .replace(/ED$/, "E"),
);
/** As in Mem0's answers, an integer is an id, too. */
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
    // A new text that cannot be sent replaces the old one all the same.
    const isUnusable = typeof memory === "string" && text === null;
    const end = field.memoryEnd(said) ?? (isUnusable ? { until: field.ENDED } : undefined);
    // One that says that its memory no longer holds needs no text.
    if (end === undefined && text === null)
      context.addIssue({
        code: "custom",
        path: memory == null ? [] : ["data", "memory"],
        message: "has neither a text nor an end",
      });
    return { kind: "updated", memoryId: id, text, end };
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

/** `POST /webhooks/mem0`: a memory that Mem0 deleted is forgotten, one that it updated is never sent with its old text again. */
export function addWebhookRoute(app: OpenAPIHono<HttpEnvironment>): void {
  const described = {
    method: "post",
    path: WEBHOOK_PATH,
    body,
    status: 204,
    says: "Success, or nothing to do.",
    answerHeaders: [],
    security: words.webhookSecurity,
    isPretty: false,
  } as const;
  addRoute(app, "receiveMem0Event", described, async (c) => {
    // What nobody reads of the memory, its metadata for one, costs no event.
    const given = readJson(c, ["event_details", "data"]);
    if (given instanceof Response) return given;
    const { event_details: event } = await validated(body, given.value);
    if (event !== null) await c.get("memprefix").takeMemoryEvent(event, c.req.raw.signal);
    return c.body(null, 204);
  });
}
