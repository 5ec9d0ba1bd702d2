import type { OpenAPIHono } from "@hono/zod-openapi";
import type { z } from "zod";
import { chatHeaders } from "../contracts/chat-contract.js";
import { exampleOf } from "../contracts/examples.js";
import { CHAT_HEADERS, headerReferences, RATE_HEADERS } from "../contracts/openapi-headers.js";
import { problemResponses } from "../contracts/openapi-problems.js";
import { PROXY_SERVERS } from "../contracts/openapi-servers.js";
import { described } from "../contracts/operations.js";
import type { HttpEnvironment } from "../requests/request.js";

/** A route that takes a prompt in a client's API. */
interface PromptRoute {
  readonly path: string;
  readonly operation: Parameters<typeof described>[0] & Parameters<typeof exampleOf>[0];
  /** Its schemas: the client's body, an answer, and the events of a streamed one. */
  readonly body: z.ZodType;
  readonly result: z.ZodType;
  readonly events: z.ZodType;
  /** The form of its errors. */
  readonly errors: Parameters<typeof problemResponses>[1];
}

/** Describes a route of prompts in the OpenAPI document. */
export function describePromptRoute(
  app: OpenAPIHono<HttpEnvironment>,
  { path, operation, body, result, events, errors }: PromptRoute,
): void {
  const example = exampleOf(operation);
  app.openAPIRegistry.registerPath({
    method: "post",
    path,
    ...described(operation),
    servers: PROXY_SERVERS,
    request: {
      headers: chatHeaders,
      body: { required: true, content: { "application/json": { schema: body, example: example.request } } },
    },
    responses: {
      200: {
        description:
          "The engine's answer, unmodified; server-sent events with `stream`. Engine errors pass through likewise.",
        headers: headerReferences([...CHAT_HEADERS, ...RATE_HEADERS]),
        content: {
          "application/json": { schema: result, example: example.answer },
          "text/event-stream": { schema: events },
        },
      },
      ...problemResponses(operation.problems, errors),
    },
  });
}
