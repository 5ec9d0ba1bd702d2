import type { OpenAPIHono } from "@hono/zod-openapi";
import { z } from "zod";
import * as field from "../../service/fields/fields.js";
import type { MemoryEvent } from "../../service/records/memory-forgetting.js";
import words from "../contracts/openapi.json" with { type: "json" };
import { readJson } from "../guards/body.js";
import { problemSchema } from "../problems/problem.js";
import { type HttpEnvironment, WEBHOOK_PATH } from "../requests/request.js";
import { addRoute, validated } from "./json-route.js";

const deleted = z
  .looseObject({ event: z.literal("DELETE"), id: field.memoryId })
  .transform(({ id }): MemoryEvent => ({ kind: "deleted", memoryId: id }));
const updated = z
  .looseObject({
    event: z.literal("UPDATE"),
    id: field.memoryId,
    data: z.looseObject({ memory: field.foundMemoryText.nullish() }).nullish(),
  })
  .transform(({ id, data, ...details }): Extract<MemoryEvent, { kind: "updated" }> => {
    const said = { id, ...details, ...data };
    return { kind: "updated", memoryId: id, text: data?.memory ?? null, end: field.memoryEnd(said) };
  })
  .refine(({ text, end }) => text !== null || end !== undefined, "has neither a text nor an end");
const other = z
  .looseObject({ event: z.string().regex(/^(?!(DELETE|UPDATE)$)/, "lacks what belongs to it") })
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
    others: {
      401: {
        description: "The request does not have the webhook's token.",
        content: { "application/problem+json": { schema: problemSchema } },
      },
    },
    security: words.webhookSecurity,
    isPretty: false,
  } as const;
  addRoute(app, "receiveMem0Event", described, async (c) => {
    const given = await readJson(c);
    if (given instanceof Response) return given;
    const { event_details: event } = await validated(body, given.value);
    if (event !== null) await c.get("memstem").takeMemoryEvent(event, c.req.raw.signal);
    return c.body(null, 204);
  });
}
