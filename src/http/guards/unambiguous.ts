import type { MiddlewareHandler } from "hono";
import { type FieldIssue, InvalidRequestError } from "../../service/base/errors.js";
import { answerProblem } from "../problems/openai-problem.js";
import { problem } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/environment.js";
import { cutTarget, isOpenAiPath } from "../requests/paths.js";

/** The headers that say something to memstem. */
const OWN_HEADER = /^x-memstem-/i;

/**
 * Refuses what can be read in two ways: a header of ours or a query parameter that is given twice (Node joins the headers, and two users
 * become one that nobody is), and an address whose escapes are no UTF-8, which would be taken as they stand. The query of a path of
 * OpenAI's is the engine's to read.
 */
export function refuseAmbiguous(): MiddlewareHandler<HttpEnvironment> {
  return async function refuseAmbiguous(c, next) {
    const { path, query } = cutTarget(c.env?.incoming?.url ?? c.req.url);
    const isEngines = isOpenAiPath(c.req.path);
    if (!isDecodable(path) || (!isEngines && !isDecodable(query))) {
      return answerProblem(c, problem(400, "the request's address has escapes that are no UTF-8"));
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
