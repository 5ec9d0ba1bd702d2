import {
  DeletedMeanwhileError,
  InvalidRequestError,
  MemorySourceError,
  NotFoundError,
} from "../../service/base/errors.js";
import { anthropicErrorOf, anthropicProblemSchema } from "../problems/anthropic-problem.js";
import { openAiErrorOf, openAiProblemSchema } from "../problems/openai-problem.js";
import { notJson, type Problem, problem, problemOf, problemSchema, SlowBodyError } from "../problems/problem.js";
import { type HeaderName, headerReferences, RATE_HEADERS } from "./openapi-headers.js";

/*
 * The problems of the OpenAPI document: one response for each status, referenced by the operations that can give it. Paths of OpenAI's
 * answer in a shape that OpenAI's clients can read too.
 */

interface DescribedProblem {
  /** Of the component. */
  readonly name: string;
  readonly description: string;
  readonly headers: readonly HeaderName[];
  readonly example: Problem;
}

const withField = (status: number, field: string, message: string) =>
  problem(status, `${field}: ${message}`, [{ field, message }]);

const PROBLEMS = {
  400: {
    name: "Malformed",
    description: "The body is not JSON, or the address is not UTF-8.",
    headers: RATE_HEADERS,
    example: notJson(),
  },
  401: {
    name: "NoValidKey",
    description: "API keys are in use, and the request has none that is valid.",
    headers: ["www-authenticate"],
    example: problem(401, "an API key is needed: `authorization: Bearer …` or `x-api-key`"),
  },
  403: {
    name: "OtherSite",
    description: "Without API keys: a web page of another origin made the request (see `MEMSTEM_CORS_ORIGINS`).",
    headers: [],
    example: problem(403, "pages of other sites may not call: see MEMSTEM_CORS_ORIGINS"),
  },
  404: {
    name: "NotFound",
    description:
      "What the request names does not exist: a request of the user, or a thread, which memstem does not hold.",
    headers: RATE_HEADERS,
    example: problemOf(new NotFoundError("request_id", "no such request of this user")),
  },
  408: {
    name: "TooSlow",
    description: "The body arrived too slowly; the detail names the limit.",
    headers: ["retry-after", ...RATE_HEADERS],
    example: problemOf(new SlowBodyError("no byte of the body arrived for 15000 ms")),
  },
  409: {
    name: "DeletedMeanwhile",
    description: "The user or memory was deleted while the request was in progress.",
    headers: RATE_HEADERS,
    example: problemOf(new DeletedMeanwhileError()),
  },
  413: {
    name: "TooLarge",
    description: "The body exceeds `MEMSTEM_MAX_BODY_BYTES`, or a batch in one JSON document 128 MiB.",
    headers: RATE_HEADERS,
    example: withField(413, "body", "must be at most 4194304 bytes"),
  },
  415: {
    name: "WrongMediaType",
    description: "The content type is not JSON.",
    headers: RATE_HEADERS,
    example: withField(415, "content-type", "must be application/json"),
  },
  421: {
    name: "WrongHost",
    description: "Without API keys: the `Host` is not the loopback's.",
    headers: [],
    example: problem(421, "without API keys only requests to the loopback by its own name are served"),
  },
  422: {
    name: "Invalid",
    description: "A field is missing, unknown or invalid; `errors` names each.",
    headers: RATE_HEADERS,
    example: problemOf(new InvalidRequestError([{ field: "user_id", message: "must not be empty" }])),
  },
  429: {
    name: "TooMany",
    description: "Over a limit of the key, the address or the user; the detail names it.",
    headers: ["retry-after", ...RATE_HEADERS],
    example: problem(429, "this key has used up its rate (20 requests a second, 40 at once): MEMSTEM_RATE_PER_SECOND"),
  },
  501: {
    name: "NotSupported",
    description: "Not configured, or the memory source cannot do it.",
    headers: RATE_HEADERS,
    example: problem(501, "no engine is configured: set MEMSTEM_UPSTREAM_URL"),
  },
  502: {
    name: "Failed",
    description: "The memory source or the upstream engine failed.",
    headers: RATE_HEADERS,
    example: problemOf(new MemorySourceError("rest", { kind: "refused", status: 500, body: "" })),
  },
  503: {
    name: "Overloaded",
    description: "Overload, the service is stopping, or the database is not available.",
    headers: ["retry-after", ...RATE_HEADERS],
    example: problem(503, "the service is stopping"),
  },
  504: {
    name: "TimedOut",
    description: "The memory source or the upstream engine did not answer in time.",
    headers: RATE_HEADERS,
    example: problemOf(new MemorySourceError("rest", { kind: "timeout", afterMs: 2_000 })),
  },
} as const satisfies Record<number, DescribedProblem>;

/** A status that the document describes. */
export type ProblemStatus = keyof typeof PROBLEMS;

/** Problems that every route behind the guards can give, with or without a body. */
export const REQUEST_PROBLEMS = [400, 401, 403, 421, 422, 429, 503] as const satisfies readonly ProblemStatus[];
/** Problems of every route that takes a body. */
export const BODY_PROBLEMS = [...REQUEST_PROBLEMS, 408, 413, 415] as const satisfies readonly ProblemStatus[];

/** In which shape problems are sent: RFC 9457 alone, or with OpenAI's `error` beside, or with Anthropic's. */
export type ProblemShape = "problem" | "openai" | "anthropic";

const SHAPES = {
  problem: { prefix: "", schema: "Problem", headers: [], exampleOf: (example) => example },
  openai: {
    prefix: "OpenAI",
    schema: "OpenAIProblem",
    headers: ["x-memstem-error-origin"],
    exampleOf: (example) => ({ ...example, ...openAiErrorOf(example) }),
  },
  anthropic: {
    prefix: "Anthropic",
    schema: "AnthropicProblem",
    headers: ["x-memstem-error-origin"],
    exampleOf: (example) => ({ ...example, ...anthropicErrorOf(example) }),
  },
} as const satisfies Record<
  ProblemShape,
  {
    readonly prefix: string;
    readonly schema: string;
    readonly headers: readonly HeaderName[];
    readonly exampleOf: (example: Problem) => object;
  }
>;

const MEDIA_TYPE = "application/problem+json";

/** The problems of an operation, by status, and `default` for the rest. */
export function problemResponses(statuses: readonly ProblemStatus[], shape: ProblemShape = "problem") {
  const { prefix, headers } = SHAPES[shape];
  const named = statuses.map((status) => [
    status,
    { $ref: `#/components/responses/${prefix}${PROBLEMS[status].name}` },
  ]);
  const schema = { problem: problemSchema, openai: openAiProblemSchema, anthropic: anthropicProblemSchema }[shape];
  return {
    ...(Object.fromEntries(named) as Record<number, { readonly $ref: string }>),
    default: {
      description: "Another problem.",
      headers: headerReferences([...headers, "retry-after", ...RATE_HEADERS]),
      content: { [MEDIA_TYPE]: { schema } },
    },
  };
}

/** The response that {@link problemResponses} refers to, with its component's name. */
export function problemComponent(status: ProblemStatus, shape: ProblemShape) {
  const { prefix, schema, headers, exampleOf } = SHAPES[shape];
  const { name, description, headers: own, example } = PROBLEMS[status];
  return {
    name: `${prefix}${name}`,
    response: {
      description,
      headers: headerReferences([...headers, ...own]),
      content: {
        [MEDIA_TYPE]: {
          schema: { $ref: `#/components/schemas/${schema}` },
          example: exampleOf(example),
        },
      },
    },
  };
}
