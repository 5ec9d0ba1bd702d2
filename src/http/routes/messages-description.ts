import type { OpenAPIHono } from "@hono/zod-openapi";
import { exampleOf } from "../contracts/examples.js";
import * as wire from "../contracts/messages-contract.js";
import { headerReferences, RATE_HEADERS } from "../contracts/openapi-headers.js";
import { problemResponses } from "../contracts/openapi-problems.js";
import { PROXY_SERVERS } from "../contracts/openapi-servers.js";
import { described, OPERATIONS } from "../contracts/operations.js";
import type { HttpEnvironment } from "../requests/request.js";
import { describePromptRoute } from "./prompt-route-description.js";

/** Describes the routes of Anthropic's API in the OpenAPI document. */
export function describeMessagesRoutes(app: OpenAPIHono<HttpEnvironment>): void {
  const { messages, countTokens } = OPERATIONS;
  describePromptRoute(app, {
    path: wire.MESSAGES_PATH,
    operation: messages,
    body: wire.messagesBody,
    result: wire.messagesResult,
    events: wire.messagesEvents,
    errors: "anthropic",
  });
  const counting = exampleOf(countTokens);
  app.openAPIRegistry.registerPath({
    method: "post",
    path: wire.COUNT_TOKENS_PATH,
    ...described(countTokens),
    servers: PROXY_SERVERS,
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
