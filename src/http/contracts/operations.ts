import type { RouteConfig } from "@hono/zod-openapi";
import { z } from "zod";
import { PRETTY_PARAMETER } from "./answer-form.js";
import examples from "./examples.json" with { type: "json" };
import document from "./openapi.json" with { type: "json" };
import { type HeaderName, headerReferences, RATE_HEADERS } from "./openapi-headers.js";
import { BODY_PROBLEMS, type ProblemShape, problemResponses, REQUEST_PROBLEMS } from "./openapi-problems.js";

/*
 * The operations of the OpenAPI document. `openapi.json` has their words and `examples.json` their examples, both by operation id; schemas
 * are the contracts'. The examples of the user `ana` follow each other: a conversation's first turn, what the engine reported of it, what
 * is stored then. A test sends the requests and compares the answers.
 */

/** An operation with ids in its path exists a second time, `…ByQuery`. */
export type OperationId = keyof typeof document.operations;

interface Operation {
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** Statuses of problems beside those of every route; others are `default`. */
  readonly also?: readonly number[];
  /** All statuses of problems, of a route to which those of every route do not apply. */
  readonly problems?: readonly number[];
}

const OPERATIONS: Readonly<Record<OperationId, Operation>> = document.operations;

/** An operation's examples; neither where there is none. */
const exampleOf = (id: OperationId): { readonly request?: unknown; readonly answer?: unknown } =>
  (examples as Partial<Record<OperationId, { readonly request?: unknown; readonly answer?: unknown }>>)[id] ?? {};

/** A body's schema, or its schemas by media type; the example is JSON's. */
type Bodies = z.ZodType | Readonly<Record<string, z.ZodType>>;

/** What an operation takes and gives, beside its words and its problems. */
export interface Described {
  readonly method: "get" | "post" | "delete";
  readonly path: string;
  readonly params?: z.ZodObject | undefined;
  readonly query?: z.ZodObject | undefined;
  readonly headers?: z.ZodObject;
  readonly body?: Bodies | undefined;
  readonly answer?: Bodies;
  /** Of success. Default: 200. */
  readonly status?: number;
  /** Of success. Default: "Success." */
  readonly says?: string;
  /** Of success. Default: those of the rate. */
  readonly answerHeaders?: readonly HeaderName[];
  /** Other answers than success and problems. */
  readonly others?: RouteConfig["responses"];
  /** Whether it answers in JSON that can be indented. */
  readonly isPretty?: boolean;
  /** Whether its ids are in the query though another path has them in itself. */
  readonly isByQuery?: boolean;
  readonly security?: readonly Readonly<Record<string, never[]>>[];
}

/** An operation as the document has it. */
export function operation(id: OperationId, of: Described): RouteConfig {
  const { tag, summary, description, also = [], problems } = OPERATIONS[id];
  const { method, path, params, query, headers, body, security, isByQuery = false } = of;
  const { status = 200, says = "Success.", answerHeaders = RATE_HEADERS, answer, others = {} } = of;
  const example = exampleOf(id);
  const shape = SHAPES_BY_TAG[tag] ?? "problem";
  const statuses = problems ?? [...(body === undefined ? REQUEST_PROBLEMS : BODY_PROBLEMS), ...also];
  return {
    method,
    path,
    operationId: isByQuery ? `${id}ByQuery` : id,
    tags: [tag],
    summary,
    description: isByQuery ? document.byQuery : description,
    ...(shape === "problem" ? {} : { servers: document.proxyServers }),
    ...(security === undefined ? {} : { security: [...security] }),
    ...(of.isPretty ? { parameters: query === undefined ? [PRETTY_PARAMETER] : [] } : {}),
    request: {
      ...(params === undefined ? {} : { params }),
      ...(query === undefined ? {} : { query }),
      ...(headers === undefined ? {} : { headers }),
      ...(body === undefined ? {} : { body: { required: true, content: contentOf(body, example.request) } }),
    },
    responses: {
      [status]: {
        description: says,
        ...(answerHeaders.length === 0 ? {} : { headers: headerReferences(answerHeaders) }),
        ...(answer === undefined ? {} : { content: contentOf(answer, example.answer) }),
      },
      ...others,
      ...problemResponses(statuses, shape),
    },
  };
}

/** In which shape problems are sent, where it is not RFC 9457's alone. */
const SHAPES_BY_TAG: Readonly<Record<string, ProblemShape>> = { Chat: "openai", Messages: "anthropic" };

const JSON_TYPE = "application/json";

function contentOf(bodies: Bodies, example: unknown) {
  const byType = bodies instanceof z.ZodType ? { [JSON_TYPE]: bodies } : bodies;
  return Object.fromEntries(
    Object.entries(byType).map(([type, schema]) => [
      type,
      { schema, ...(type === JSON_TYPE && example !== undefined ? { example } : {}) },
    ]),
  );
}
