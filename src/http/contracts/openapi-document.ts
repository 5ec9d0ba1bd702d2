import type { OpenAPIHono } from "@hono/zod-openapi";
import type { HttpEnvironment } from "../requests/request.js";
import { RESPONSES_ITEM } from "./compose-contract.js";
import { HEADERS } from "./openapi-headers.js";
import { type ProblemShape, type ProblemStatus, problemComponent } from "./openapi-problems.js";
import { SECURITY, SECURITY_SCHEMES, WEBHOOK_SECURITY_SCHEMES } from "./openapi-security.js";
import { OPERATIONS, TAGS } from "./operations.js";

/*
 * `GET /openapi.json`: the parts that belong to no single route.
 */

type OpenApi = ReturnType<OpenAPIHono<HttpEnvironment>["getOpenAPI31Document"]>;

/** Serves the document of the app's routes. Every route is to be added before it is asked for. */
export function addOpenApiDocument(
  app: OpenAPIHono<HttpEnvironment>,
  { version, hasWebhook }: { readonly version: string; readonly hasWebhook: boolean },
): void {
  const registry = app.openAPIRegistry;
  const schemes = { ...SECURITY_SCHEMES, ...(hasWebhook ? WEBHOOK_SECURITY_SCHEMES : {}) };
  for (const [name, scheme] of Object.entries(schemes)) registry.registerComponent("securitySchemes", name, scheme);
  for (const { component, header } of Object.values(HEADERS)) registry.registerComponent("headers", component, header);
  for (const shape of ["problem", "openai", "anthropic"] as const) {
    for (const status of statusesOf(shape)) {
      const { name, response } = problemComponent(status, shape);
      registry.registerComponent("responses", name, response);
    }
  }
  // Named in lists that describe themselves, so it is not found by itself.
  registry.registerComponent("schemas", "ResponsesItem", RESPONSES_ITEM);
  const document = {
    openapi: "3.1.0",
    info: {
      title: "memstem",
      version,
      description:
        "Composes prompts from an agent's memories so that the inference engine's prefix cache hits. JSON is snake_case; errors are `application/problem+json` (RFC 9457).",
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
    },
    servers: [{ url: "/", description: "The service that serves this document." }],
    security: SECURITY,
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
  };
  app.get("/openapi.json", (c) => c.json(withPlainMessages(app.getOpenAPI31Document(document))));
}

/**
 * Leaves `additionalProperties: {}` out of the message schema. It is the default; said, it makes generators write an index signature, to
 * which the interfaces of OpenAI's client cannot be assigned.
 */
function withPlainMessages(document: OpenApi): OpenApi {
  const { Message: message, ...others } = document.components?.schemas ?? {};
  if (message === undefined) return document;
  const plain = JSON.parse(JSON.stringify(message), (key, value: unknown) =>
    key === "additionalProperties" && JSON.stringify(value) === "{}" ? undefined : value,
  ) as typeof message;
  return { ...document, components: { ...document.components, schemas: { Message: plain, ...others } } };
}

/** The statuses for which some operation answers with a problem of this shape. */
function statusesOf(shape: ProblemShape): ReadonlySet<ProblemStatus> {
  const operations = Object.values(OPERATIONS).filter(({ tags: [tag] }) => shapeOf(tag) === shape);
  return new Set(operations.flatMap(({ problems }): readonly ProblemStatus[] => problems));
}

function shapeOf(tag: keyof typeof TAGS): ProblemShape {
  if (tag === "Chat") return "openai";
  return tag === "Messages" ? "anthropic" : "problem";
}
