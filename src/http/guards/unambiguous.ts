import type { MiddlewareHandler } from "hono";
import { type FieldIssue, InvalidRequestError } from "../../service/base/errors.js";
import { answerProblem } from "../problems/openai-problem.js";
import { problem } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/environment.js";
import { cutTarget, isOpenAiPath } from "../requests/paths.js";

/** memstem's own request headers. */
const OWN_HEADER = /^x-memstem-/i;

/**
 * Rejects ambiguous requests: an `x-memstem-` header or a query parameter given twice (Node would join two user ids into a third), and a
 * target whose escapes are not UTF-8, which would be taken literally. The query of an OpenAI-compatible path belongs to the engine.
 */
export function rejectAmbiguous(): MiddlewareHandler<HttpEnvironment> {
  return async function rejectAmbiguous(c, next) {
    const { path, query } = cutTarget(c.env?.incoming?.url ?? c.req.url);
    const isEngines = isOpenAiPath(c.req.path);
    if (!isDecodable(path) || (!isEngines && !isDecodable(query))) {
      return answerProblem(c, problem(400, "the request target has escapes that are not UTF-8"));
    }
    const raw = c.env?.incoming?.rawHeaders ?? [];
    const own = raw.filter((name, at) => at % 2 === 0 && OWN_HEADER.test(name)).map((name) => name.toLowerCase());
    const parameters = isEngines || !query.includes("&") ? [] : [...new URLSearchParams(query).keys()];
    const issues = [...repeated(own), ...repeated(parameters)];
    if (issues.length > 0) throw new InvalidRequestError(issues);
    return next();
  };
}

function isDecodable(text: string): boolean {
  if (!text.includes("%")) return true;
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function repeated(names: readonly string[]): FieldIssue[] {
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at));
  return [...twice].map((field) => ({ field, message: "must be given once" }));
}
