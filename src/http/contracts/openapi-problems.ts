import type { z } from "zod";
import { anthropicErrorOf, anthropicProblemSchema } from "../problems/anthropic-problem.js";
import { openAiErrorOf, openAiProblemSchema } from "../problems/openai-problem.js";
import { type Problem, problem, problemSchema } from "../problems/problem.js";
import words from "./openapi.json" with { type: "json" };
import { type HeaderName, headerReferences, RATE_HEADERS } from "./openapi-headers.js";

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

const PROBLEMS: Readonly<Record<string, DescribedProblem>> = words.problems;

/** Statuses of problems that every guarded route can give, with or without a body. */
export const REQUEST_PROBLEMS = [400, 401, 403, 421, 422, 429, 503];
/** Those of every route that takes a body. */
export const BODY_PROBLEMS = [...REQUEST_PROBLEMS, 408, 413, 415];

/** In which shape problems are sent: RFC 9457 alone, or with OpenAI's `error` beside, or with Anthropic's. */
export type ProblemShape = "problem" | "openai" | "anthropic";

interface Shape {
  /** Of the components' names. */
  readonly prefix: string;
  readonly schema: z.ZodType;
  readonly headers: readonly HeaderName[];
  readonly shaped: (example: Problem) => object;
}

const ORIGIN: readonly HeaderName[] = ["x-memstem-error-origin"];
const SHAPES: Readonly<Record<ProblemShape, Shape>> = {
  problem: { prefix: "", schema: problemSchema, headers: [], shaped: () => ({}) },
  openai: { prefix: "OpenAI", schema: openAiProblemSchema, headers: ORIGIN, shaped: openAiErrorOf },
  anthropic: { prefix: "Anthropic", schema: anthropicProblemSchema, headers: ORIGIN, shaped: anthropicErrorOf },
};

const MEDIA_TYPE = "application/problem+json";

/** The problems of an operation, by status, and `default` for the rest. */
export function problemResponses(statuses: readonly number[], shape: ProblemShape) {
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
