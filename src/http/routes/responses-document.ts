import type { OpenAPIHono } from "@hono/zod-openapi";
import { chatEvents, chatHeaders } from "../contracts/chat-contract.js";
import { exampleOf } from "../contracts/examples.js";
import { CHAT_HEADERS, headerReferences, RATE_HEADERS } from "../contracts/openapi-headers.js";
import { problemResponses } from "../contracts/openapi-problems.js";
import { described, OPERATIONS } from "../contracts/operations.js";
import { RESPONSES_PATH, responsesBody, responsesResult } from "../contracts/responses-contract.js";
import type { HttpEnvironment } from "../requests/request.js";

/** Describes `POST /v1/responses` in the OpenAPI document. */
export function describeResponses(app: OpenAPIHono<HttpEnvironment>): void {
  const example = exampleOf(OPERATIONS.responses);
  app.openAPIRegistry.registerPath({
    method: "post",
    path: RESPONSES_PATH,
    ...described(OPERATIONS.responses),
    request: {
      headers: chatHeaders,
      body: { required: true, content: { "application/json": { schema: responsesBody, example: example.request } } },
    },
    responses: {
      200: {
        description:
          "The engine's answer, unmodified; server-sent events with `stream`. Engine errors pass through likewise.",
        headers: headerReferences([...CHAT_HEADERS, ...RATE_HEADERS]),
        content: {
          "application/json": { schema: responsesResult, example: example.answer },
          "text/event-stream": { schema: chatEvents },
        },
      },
      ...problemResponses(OPERATIONS.responses.problems, "openai"),
    },
  });
}
