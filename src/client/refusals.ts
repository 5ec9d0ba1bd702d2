import {
  DeletedMeanwhileError,
  InvalidRequestError,
  MemorySourceError,
  MemstemHttpError,
  NotFoundError,
  type Problem,
  type Refusal,
} from "./errors.js";
import { camelField, type UnmodifiedPaths } from "./wire-names.js";

/** The error for an answer other than success. Reads the body. */
export async function refusalOf(
  response: Response,
  what: string,
  unmodified: UnmodifiedPaths,
): Promise<MemstemHttpError> {
  const text = await response.text();
  const problem = problemIn(text, unmodified);
  const { status } = response;
  const refusal = { status, problem, retryAfterMs: retryAfterMs(response.headers.get("retry-after"), Date.now()) };
  if (problem === null) {
    const kind = response.headers.get("content-type") ?? "no content type";
    return new MemstemHttpError(`${what} was answered ${status} (${kind}), which is no problem of memstem's`, refusal);
  }
  return errorFor(problem, refusal, what);
}

/** As the service's table of problems has them (`src/http/problems/problem.ts`), read the other way. */
function errorFor(problem: Problem, refusal: Refusal, what: string): MemstemHttpError {
  const { status, detail = problem.title, errors = [] } = problem;
  const [first] = errors;
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      if (first !== undefined) return new InvalidRequestError(errors, refusal);
      break;
    case 404:
      if (first !== undefined) return new NotFoundError(first.field, detail, refusal);
      break;
    case 409:
      return new DeletedMeanwhileError(detail, refusal);
    case 501:
    case 502:
    case 504:
      return new MemorySourceError(detail, refusal);
    default:
  }
  return new MemstemHttpError(`${what} was answered ${status}: ${detail}`, refusal);
}

function problemIn(text: string, unmodified: UnmodifiedPaths): Problem | null {
  try {
    return readProblem(JSON.parse(text), unmodified);
  } catch {
    return null;
  }
}

/** A problem's JSON, with its fields named as the caller names them; null where it is none. */
export function readProblem(json: unknown, unmodified: UnmodifiedPaths): Problem | null {
  if (!isProblem(json)) return null;
  const { type, title, status, detail, errors } = json;
  const said = errors?.map(({ field, message }) => ({ field: camelField(field, unmodified), message }));
  return {
    type,
    title,
    status,
    ...(detail === undefined ? {} : { detail }),
    ...(said === undefined ? {} : { errors: said }),
  };
}

function isProblem(json: unknown): json is Problem {
  if (typeof json !== "object" || json === null) return false;
  const { title, status, detail, errors } = json as Partial<Record<keyof Problem, unknown>>;
  if (typeof title !== "string" || typeof status !== "number") return false;
  if (detail !== undefined && typeof detail !== "string") return false;
  return errors === undefined || (Array.isArray(errors) && errors.every(isIssue));
}

function isIssue(value: unknown): boolean {
  const { field, message } = (value ?? {}) as { readonly field?: unknown; readonly message?: unknown };
  return typeof field === "string" && typeof message === "string";
}

/** `Retry-After` in milliseconds: seconds, or a date (RFC 9110, section 10.2.3); null where it says neither. */
export function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1_000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
