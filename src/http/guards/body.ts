import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { InvalidRequestError } from "../../service/base/errors.js";
import { answerProblem } from "../problems/openai-problem.js";
import { notJson, problem, problemResponse } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/environment.js";
import { BATCH_PATH } from "../requests/paths.js";
import { utf8Text } from "../requests/utf8.js";
import { type BodyPace, bodyChunks } from "./body-pace.js";
import { awaitBody } from "./pending.js";
import { refuseUnsafe } from "./safe-json.js";

/** What a body must keep to. */
export interface BodyLimits {
  /** Most bytes of one. */
  readonly maxBytes: number;
  readonly pace: BodyPace;
  /** Called once for each that is too long. */
  readonly onTooLarge: () => void;
}

/**
 * Reads the body of every request but a batch's, which keeps limits of its own, and refuses one that is too long, comes too slowly, or is
 * one too many of its client's that have to be waited for. One that says its length is judged by that.
 */
export function receiveBody({ maxBytes, pace, onTooLarge }: BodyLimits): MiddlewareHandler<HttpEnvironment> {
  const refuse = (c: Context) => {
    onTooLarge();
    const message = `must be at most ${maxBytes} bytes`;
    return answerProblem(c, problem(413, `body: ${message}`, [{ field: "body", message }]));
  };
  const counted = bodyLimit({ maxSize: maxBytes, onError: refuse });
  return async function receiveBody(c, next) {
    if (c.req.path === BATCH_PATH) return next();
    const incoming = c.env?.incoming;
    if (c.req.method === "GET" || c.req.method === "HEAD") {
      await next();
      // Nobody reads it, and nothing else would end the wait for it.
      if (incoming?.complete === false) c.res.headers.set("connection", "close");
      return undefined;
    }
    if (incoming === undefined) return counted(c, next);
    const length = c.req.header("content-length");
    if (length !== undefined && Number(length) > maxBytes) return refuse(c);
    const parts: Uint8Array[] = [];
    let received = 0;
    for await (const chunk of bodyChunks(incoming, { pace, onAwaited: () => awaitBody(c) })) {
      received += chunk.length;
      if (received > maxBytes) return refuse(c);
      parts.push(chunk);
    }
    // Where Hono's adapter looks for a body that was read before it.
    Object.assign(incoming, { rawBody: parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts) });
    return next();
  };
}

/** Refuses a body that is not safe to parse, for handlers that parse what {@link receiveBody} read by themselves. */
export const refuseUnsafeBody: MiddlewareHandler<HttpEnvironment> = async (c, next) => {
  const incoming = c.env?.incoming;
  const body: unknown = incoming === undefined ? undefined : Reflect.get(incoming, "rawBody");
  // What is not UTF-8 becomes replacement characters, which are no part of JSON's structure.
  if (Buffer.isBuffer(body)) refuseUnsafe(body.toString("utf8"));
  return next();
};

/** A body must say that it is JSON, and be text: the validator, which parses it, would skip one that says something else. */
export const requireJson: MiddlewareHandler<HttpEnvironment> = async (c, next) => {
  const type = c.req.header("content-type") ?? "";
  if (!/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type)) {
    const message = "must be application/json";
    return problemResponse(problem(415, `content-type: ${message}`, [{ field: "content-type", message }]));
  }
  try {
    const text = utf8Text(await c.req.arrayBuffer());
    refuseUnsafe(text);
    // What the validator parses, so that it is not decoded again. The cache holds promises, whatever its type says.
    Object.assign(c.req.bodyCache, { text: Promise.resolve(text) });
  } catch (error) {
    if (error instanceof InvalidRequestError) throw error;
    return problemResponse(notJson());
  }
  return next();
};
