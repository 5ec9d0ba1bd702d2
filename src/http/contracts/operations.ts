import type { RouteConfig } from "@hono/zod-openapi";
import { z } from "zod";
import { APIS } from "../../apis/apis.js";
import {
  anthropicProblemSchema,
  errorOf,
  openAiProblemSchema,
  type Problem,
  problem,
  problemSchema,
} from "../problems/problem.js";
import examples from "./examples.json" with { type: "json" };
import document from "./openapi.json" with { type: "json" };
import { PRETTY_PARAMETER } from "./wire-form.js";

/*
 * The response headers of the OpenAPI document; `openapi.json` describes them. Standard ones (`content-type`, CORS, browser security) are
 * not described.
 */

/** A header's name on the wire. */
export type HeaderName = keyof typeof document.headers;

/** Sent with every answer to a caller whose rate is limited. */
export const RATE_HEADERS = ["ratelimit", "ratelimit-policy"] as const satisfies readonly HeaderName[];

/** What the chat proxy adds to the engine's answer. */
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

/** References to headers, for a response. */
function headerReferences(names: readonly HeaderName[]): Record<string, { readonly $ref: string }> {
  return Object.fromEntries(
    names.map((name) => [name, { $ref: `#/components/headers/${document.headers[name].component}` }]),
  );
}

/*
 * The problems of the OpenAPI document: one response for each status, referenced by the operations that can give it. Paths of OpenAI's
 * answer in a shape that OpenAI's clients can read too.
 */

/** A problem as `openapi.json` describes it, with the detail of an example. */
interface DescribedProblem {
  /** Of the component. */
  readonly name: string;
  readonly description: string;
  readonly detail: string;
  readonly errors?: Problem["errors"];
  /** Default: those of the rate. */
  readonly headers?: readonly string[];
}

const PROBLEMS: Readonly<Record<string, DescribedProblem>> = document.problems;

/** Statuses of problems that every guarded route can give, with or without a body. */
const REQUEST_PROBLEMS = [400, 401, 403, 421, 422, 429, 503];
/** Those of every route that takes a body. */
const BODY_PROBLEMS = [...REQUEST_PROBLEMS, 408, 413, 415];

/** In which shape problems are sent: RFC 9457 alone, or with OpenAI's `error` beside, or with Anthropic's. */
export type ProblemShape = "problem" | "openai" | "anthropic";

interface Shape {
  /** Of the components' names. */
  readonly prefix: string;
  readonly schema: z.ZodType;
  readonly headers: readonly HeaderName[];
  readonly shaped: (example: Problem) => object;
}

const ORIGIN: readonly HeaderName[] = ["x-memprefix-error-origin"];
const SHAPES: Readonly<Record<ProblemShape, Shape>> = {
  problem: { prefix: "", schema: problemSchema, headers: [], shaped: () => ({}) },
  openai: { prefix: "OpenAI", schema: openAiProblemSchema, headers: ORIGIN, shaped: (one) => errorOf(APIS.chat, one) },
  anthropic: {
    prefix: "Anthropic",
    schema: anthropicProblemSchema,
    headers: ORIGIN,
    shaped: (one) => errorOf(APIS.messages, one),
  },
};

const MEDIA_TYPE = "application/problem+json";

/** The problems of an operation, by status, and `default` for the rest. */
function problemResponses(statuses: readonly number[], shape: ProblemShape) {
  const { prefix, schema, headers } = SHAPES[shape];
  const refTo = (status: number) => ({ $ref: `#/components/responses/${prefix}${PROBLEMS[status]?.name}` });
  return {
    ...(Object.fromEntries(statuses.map((status) => [status, refTo(status)])) as Record<number, { $ref: string }>),
    default: {
      description: "Another problem.",
      headers: headerReferences([...headers, "retry-after", ...RATE_HEADERS]),
      content: { [MEDIA_TYPE]: { schema } },
    },
  };
}

/** Every response that {@link problemResponses} may refer to, by its component's name. */
export function problemComponents() {
  return Object.values(SHAPES).flatMap(({ prefix, headers, shaped }) =>
    Object.entries(PROBLEMS).map(([status, { name, description, detail, errors, headers: own = RATE_HEADERS }]) => {
      const example = problem(Number(status), detail, errors);
      const schema = { $ref: `#/components/schemas/${prefix}Problem` };
      return {
        name: `${prefix}${name}`,
        response: {
          description,
          headers: headerReferences([...headers, ...(own as readonly HeaderName[])]),
          content: { [MEDIA_TYPE]: { schema, example: { ...example, ...shaped(example) } } },
        },
      };
    }),
  );
}

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
