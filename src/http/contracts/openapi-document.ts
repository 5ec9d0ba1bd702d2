import type { OpenAPIHono } from "@hono/zod-openapi";
import type { HttpEnvironment } from "../requests/request.js";
import { RESPONSES_ITEM } from "./compose-contract.js";
import words from "./openapi.json" with { type: "json" };
import { jsonOf } from "./wire-form.js";

/*
 * `GET /openapi.json`: the parts that belong to no single route.
 */

type OpenApi = ReturnType<OpenAPIHono<HttpEnvironment>["getOpenAPI31Document"]>;
type Info = Parameters<OpenAPIHono<HttpEnvironment>["getOpenAPI31Document"]>[0];

/** Serves the OpenAPI document. Add every route before it is first requested. */
export function addOpenApiDocument(
  app: OpenAPIHono<HttpEnvironment>,
  { version, hasWebhook }: { readonly version: string; readonly hasWebhook: boolean },
): void {
  const registry = app.openAPIRegistry;
  const { info, servers, security, tags, securitySchemes, webhookSecuritySchemes } = words;
  const schemes = { ...securitySchemes, ...(hasWebhook ? webhookSecuritySchemes : {}) };
  for (const [name, scheme] of Object.entries(schemes))
    registry.registerComponent("securitySchemes", name, scheme as never);
  // Only self-describing lists name it, so it is not found by itself.
  registry.registerComponent("schemas", "ResponsesItem", RESPONSES_ITEM);
  const document = {
    openapi: "3.1.0",
    info: { ...info, version },
    servers,
    security,
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
  } as unknown as Info;
  app.get("/openapi.json", (c) => jsonOf(c, withPlainMessages(app.getOpenAPI31Document(document))));
}

/**
 * Leaves `additionalProperties: {}` out of the message schema. It is the default, but explicit it makes generators write an index signature,
 * to which the interfaces of OpenAI's client cannot be assigned.
 */
function withPlainMessages(document: OpenApi): OpenApi {
  const { Message: message, ...others } = document.components?.schemas ?? {};
  if (message === undefined) return document;
  const plain = JSON.parse(JSON.stringify(message), (key, value: unknown) =>
    key === "additionalProperties" && JSON.stringify(value) === "{}" ? undefined : value,
  ) as typeof message;
  return { ...document, components: { ...document.components, schemas: { Message: plain, ...others } } };
}
