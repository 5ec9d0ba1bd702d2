import type { RouteConfig } from "@hono/zod-openapi";
import { z } from "zod";
import { anthropicProblemSchema, openAiProblemSchema, problemSchema } from "../problems/problem.js";
import examples from "./examples.json" with { type: "json" };
import document from "./openapi.json" with { type: "json" };

/*
 * Response headers of the OpenAPI document, described in `openapi.json`. Standard ones (`content-type`, CORS, security) are left out.
 */

export type HeaderName = keyof typeof document.headers;

/** Added by the chat proxy to the engine's answer. */
export const CHAT_HEADERS = [
  "x-memprefix-request-id",
  "x-memprefix-expected-cached-tokens",
  "x-memprefix-cached-tokens",
  "x-memprefix-depth",
  "x-memprefix-worker",
  "x-memprefix-warnings",
  "x-memprefix-source-failure",
  "x-memprefix-not-composed",
] as const satisfies readonly HeaderName[];

function describedHeaders(names: readonly HeaderName[]) {
  return Object.fromEntries(
    names.map((name) => [name, { description: document.headers[name], schema: { type: "string" as const } }]),
  );
}

/** Error schemas of tags that do not answer in RFC 9457's form alone. */
const PROBLEMS_BY_TAG: Readonly<Record<string, z.ZodType>> = {
  Chat: openAiProblemSchema,
  Messages: anthropicProblemSchema,
};

function problemResponse(tag: string) {
  const shaped = PROBLEMS_BY_TAG[tag];
  const origin = shaped === undefined ? [] : (["x-memprefix-error-origin"] as const);
  return {
    description: "A problem; its status says of which kind.",
    headers: describedHeaders([...origin, "retry-after", "www-authenticate"]),
    content: { "application/problem+json": { schema: shaped ?? problemSchema } },
  };
}

/*
 * Operations of the OpenAPI document. By operation id, `openapi.json` has their words, and `examples.json` examples of their bodies, which a
 * test sends. Schemas are the contracts'.
 */

/** An operation with ids in its path also exists as `…ByQuery`. */
export type OperationId = keyof typeof document.operations;

interface Operation {
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
}

const OPERATIONS: Readonly<Record<OperationId, Operation>> = document.operations;

const EXAMPLES: Readonly<Partial<Record<OperationId, unknown>>> = examples;

/** A body's schema, or schemas by media type; the example is JSON's. */
type Bodies = z.ZodType | Readonly<Record<string, z.ZodType>>;

/** An operation, without its words and problems. Defaults of a success: 200 and "Success.". */
export interface Described {
  readonly method: "get" | "post" | "delete";
  readonly path: string;
  readonly params?: z.ZodObject | undefined;
  readonly query?: z.ZodObject | undefined;
  readonly headers?: z.ZodObject;
  readonly body?: Bodies | undefined;
  readonly answer?: Bodies;
  readonly status?: number;
  /** Whether it may also answer 202, with the same body. */
  readonly isLater?: boolean;
  readonly says?: string;
  readonly answerHeaders?: readonly HeaderName[];
  /** Answers that are neither success nor a problem. */
  readonly others?: RouteConfig["responses"];
  /** Whether its ids are in the query, and another path has them in itself. */
  readonly isByQuery?: boolean;
  readonly security?: readonly Readonly<Record<string, never[]>>[];
}

export function operation(id: OperationId, of: Described): RouteConfig {
  const { tag, summary, description } = OPERATIONS[id];
  const { method, path, params, query, headers, body, security, isByQuery = false } = of;
  const { status = 200, says = "Success.", answerHeaders = [], answer, others = {}, isLater = false } = of;
  const success = {
    ...(answerHeaders.length === 0 ? {} : { headers: describedHeaders(answerHeaders) }),
    ...(answer === undefined ? {} : { content: contentOf(answer) }),
  };
  return {
    method,
    path,
    operationId: isByQuery ? `${id}ByQuery` : id,
    tags: [tag],
    summary,
    description: isByQuery ? document.byQuery : description,
    ...(tag in PROBLEMS_BY_TAG ? { servers: document.proxyServers } : {}),
    ...(security === undefined ? {} : { security: [...security] }),
    request: {
      ...(params === undefined ? {} : { params }),
      ...(query === undefined ? {} : { query }),
      ...(headers === undefined ? {} : { headers }),
      ...(body === undefined ? {} : { body: { required: true, content: contentOf(body, EXAMPLES[id]) } }),
    },
    responses: {
      [status]: { description: says, ...success },
      ...(isLater ? { 202: { description: "Stored, and done later.", ...success } } : {}),
      ...others,
      default: problemResponse(tag),
    },
  };
}

const JSON_TYPE = "application/json";

function contentOf(bodies: Bodies, example?: unknown) {
  const byType = bodies instanceof z.ZodType ? { [JSON_TYPE]: bodies } : bodies;
  return Object.fromEntries(
    Object.entries(byType).map(([type, schema]) => [
      type,
      { schema, ...(type === JSON_TYPE && example !== undefined ? { example } : {}) },
    ]),
  );
}
