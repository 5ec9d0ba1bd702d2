import type { OpenAPIHono } from "@hono/zod-openapi";
import { chatHeaders } from "../contracts/chat-contract.js";
import { exampleOf } from "../contracts/examples.js";
import * as wire from "../contracts/messages-contract.js";
import { CHAT_HEADERS, headerReferences, RATE_HEADERS } from "../contracts/openapi-headers.js";
import { problemResponses } from "../contracts/openapi-problems.js";
import { described, OPERATIONS } from "../contracts/operations.js";
import type { HttpEnvironment } from "../requests/request.js";

/** Describes the routes of Anthropic's API in the OpenAPI document. */
export function describeMessagesRoutes(app: OpenAPIHono<HttpEnvironment>): void {
  const { messages, countTokens } = OPERATIONS;
  const example = exampleOf(messages);
  app.openAPIRegistry.registerPath({
    method: "post",
    path: wire.MESSAGES_PATH,
    ...described(messages),
    request: {
      headers: chatHeaders,
      body: {
        required: true,
        content: { "application/json": { schema: wire.messagesBody, example: example.request } },
      },
    },
    responses: {
      200: {
        description:
          "The engine's answer, unmodified; server-sent events with `stream`. Engine errors pass through likewise.",
        headers: headerReferences([...CHAT_HEADERS, ...RATE_HEADERS]),
        content: {
          "application/json": { schema: wire.messagesResult, example: example.answer },
          "text/event-stream": { schema: wire.messagesEvents },
        },
      },
      ...problemResponses(messages.problems, "anthropic"),
    },
  });
  const counting = exampleOf(countTokens);
  app.openAPIRegistry.registerPath({
    method: "post",
    path: wire.COUNT_TOKENS_PATH,
    ...described(countTokens),
    request: {
      body: {
        required: true,
        content: { "application/json": { schema: wire.countTokensBody, example: counting.request } },
      },
    },
    responses: {
      200: {
        description: "The engine's answer, unmodified.",
        headers: headerReferences(RATE_HEADERS),
        content: { "application/json": { schema: wire.countTokensResult, example: counting.answer } },
      },
      ...problemResponses(countTokens.problems, "anthropic"),
    },
  });
}
