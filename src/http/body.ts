import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { InvalidRequestError } from "../service/errors.js";
import type { HttpEnvironment } from "./environment.js";
import { refuseDeepNesting } from "./nesting.js";
import { answerProblem } from "./openai-problem.js";
import { notJson, problem, problemResponse } from "./problem.js";
import { utf8Text } from "./utf8.js";

/**
 * Refuses bodies of more than `maxBytes`. One that says its length is judged by that (the server takes no more than was said): asking for
 * the body itself would make a web stream of it, which costs as much as composing. `onRefused` is called once for each.
 */
export function limitBody(maxBytes: number, onRefused: () => void): MiddlewareHandler {
  const refuse = (c: Context) => {
    onRefused();
    const message = `must be at most ${maxBytes} bytes`;
    return answerProblem(c, problem(413, `body: ${message}`, [{ field: "body", message }]));
  };
  const counted = bodyLimit({ maxSize: maxBytes, onError: refuse });
  return (c, next) => {
    if (c.req.method === "GET" || c.req.method === "HEAD") return next();
    const length = c.req.header("content-length");
    if (length === undefined || c.req.header("transfer-encoding") !== undefined) return counted(c, next);
    return Number(length) <= maxBytes ? next() : Promise.resolve(refuse(c));
  };
}

/** A body must say that it is JSON, and be text: the validator, which parses it, would skip one that says something else. */
export const requireJson: MiddlewareHandler<HttpEnvironment> = async (c, next) => {
  const type = c.req.header("content-type") ?? "";
  if (!/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type)) {
    const message = "must be application/json";
    return problemResponse(problem(415, `content-type: ${message}`, [{ field: "content-type", message }]));
  }
  try {
    const text = utf8Text(await c.req.arrayBuffer());
    refuseDeepNesting(text);
    // What the validator parses, so that it is not decoded again. The cache holds promises, whatever its type says.
    Object.assign(c.req.bodyCache, { text: Promise.resolve(text) });
  } catch (error) {
    if (error instanceof InvalidRequestError) throw error;
    return problemResponse(notJson());
  }
  return next();
};
