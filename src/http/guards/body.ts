import type { IncomingMessage } from "node:http";
import type { Context, MiddlewareHandler } from "hono";
import { AbandonedRequestError } from "../../service/base/errors.js";
import {
  answerProblem,
  BodyBytesError,
  notJson,
  problem,
  problemResponse,
  SlowBodyError,
} from "../problems/problem.js";
import { type HttpEnvironment, isUpload } from "../requests/request.js";
import { decodedBody, encodingIn, UndecodableBodyError } from "./encodings.js";
import { type BodyLimits, holdersOf, type SharedBound } from "./limits.js";
import { type BodyPath, parseSafeJson, utf8Text } from "./safe-json.js";

export interface BodyParts {
  readonly limits: BodyLimits;
  /** Bytes of incomplete bodies, over the whole service. */
  readonly bytes: SharedBound;
  readonly onTooLarge: () => void;
}

/**
 * Reads every body except an upload to the engine, which is a stream. Rejects a body that is too long, silent for too long
 * or in an encoding that cannot be decoded, or that exceeds the bytes being read at once. Checks `content-length` before it reads.
 */
export function receiveBody(parts: BodyParts): MiddlewareHandler<HttpEnvironment> {
  return async function receiveBody(c, next) {
    const encoding = encodingIn(c.req.header("content-encoding"));
    const { incoming } = c.env;
    if (c.req.method === "GET" || c.req.method === "HEAD" || isUpload(c)) {
      await next();
      // No handler reads the rest of this body, so nothing else would end the wait for it.
      if (!incoming.complete) c.res.headers.set("connection", "close");
      return undefined;
    }
    const read = await readBody(c, parts);
    if (!Buffer.isBuffer(read)) return read;
    const body = encoding === null ? read : await decoded(c, read, encoding, parts);
    if (!Buffer.isBuffer(body)) return body;
    // Hono's Node adapter takes an already read body from here.
    Object.assign(incoming, { rawBody: body });
    return next();
  };
}

/** Decodes a body within the limit of its length, or returns its rejection. */
async function decoded(
  c: Context<HttpEnvironment>,
  body: Buffer,
  encoding: string,
  parts: BodyParts,
): Promise<Buffer | Response> {
  const holders = holdersOf(c);
  let count = 0;
  const take = (length: number) => {
    if (!parts.bytes.take(length, holders)) throw new BodyBytesError();
    count += length;
  };
  try {
    const whole = await decodedBody(body, encoding, parts.limits.maxBodyBytes, take);
    return whole ?? tooLarge(c, parts);
  } catch (error) {
    if (!(error instanceof UndecodableBodyError)) throw error;
    const { field, message, accepted } = error;
    const refused = problem(accepted === null ? 400 : 415, `${field}: ${message}`, [{ field, message }]);
    return answerProblem(c, refused, accepted === null ? {} : { headers: { "accept-encoding": accepted } });
  } finally {
    parts.bytes.give(count, holders);
  }
}

function tooLarge(c: Context<HttpEnvironment>, { limits, onTooLarge }: BodyParts): Response {
  onTooLarge();
  const message = `must be at most ${limits.maxBodyBytes} bytes`;
  return answerProblem(c, problem(413, `body: ${message}`, [{ field: "body", message }]));
}

/** Reads a body. Returns the rejection of one that is too long; throws the others. */
async function readBody(c: Context<HttpEnvironment>, parts: BodyParts): Promise<Buffer | Response> {
  const { limits, bytes } = parts;
  const { incoming } = c.env;
  const header = c.req.header("content-length");
  const length = header === undefined ? null : Number(header);
  if (length !== null && length > limits.maxBodyBytes) return tooLarge(c, parts);
  // Node calls with the head; a body in the same packet is there after the rest is parsed.
  if (incoming.readableLength === 0) await Promise.resolve();
  if (length !== null && length > 0 && incoming.readableLength === length && !incoming.destroyed) {
    const whole: unknown = incoming.read();
    if (Buffer.isBuffer(whole)) return whole;
  }
  const holders = holdersOf(c);
  const received: Uint8Array[] = [];
  let count = 0;
  try {
    for await (const chunk of bodyChunks(incoming, limits.silentMs)) {
      if (count + chunk.length > limits.maxBodyBytes) return tooLarge(c, parts);
      if (!bytes.take(chunk.length, holders)) throw new BodyBytesError();
      count += chunk.length;
      received.push(chunk);
    }
    const [first] = received;
    return received.length === 1 && Buffer.isBuffer(first) ? first : Buffer.concat(received);
  } finally {
    bytes.give(count, holders);
  }
}

/** The body of an upload to the engine, as it arrives. Throws as {@link bodyChunks} does. */
export function uploadedBody(c: Context<HttpEnvironment>, silentMs: number): AsyncIterable<Uint8Array> {
  return bodyChunks(c.env.incoming, silentMs);
}

/** The body that {@link receiveBody} read. */
export function receivedBody(c: Context<HttpEnvironment>): Buffer {
  return Reflect.get(c.env.incoming, "rawBody") as Buffer;
}

/** A JSON body: its text and its value. */
export interface JsonBody {
  readonly json: string;
  readonly value: unknown;
}

/** A body of any content type; null where it is not JSON in UTF-8. Throws as {@link readJson} does. */
export function jsonBody(c: Context<HttpEnvironment>, memoriesAt?: BodyPath): JsonBody | null {
  try {
    const json = utf8Text(receivedBody(c));
    return { json, value: parseSafeJson(json, memoriesAt) };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  }
}

/** Whether a `content-type` is JSON, or based on JSON. */
function isJsonType(type: string): boolean {
  return /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type);
}

/** A body's JSON, or the problem of its type or bytes. Throws {@link InvalidRequestError} for unsafe JSON. */
export function readJson(c: Context<HttpEnvironment>, memoriesAt?: BodyPath): JsonBody | Response {
  if (!isJsonType(c.req.header("content-type") ?? "")) {
    const message = "must be application/json";
    return problemResponse(problem(415, `content-type: ${message}`, [{ field: "content-type", message }]));
  }
  return jsonBody(c, memoriesAt) ?? problemResponse(notJson());
}

/**
 * A request's body in chunks. Throws {@link SlowBodyError} after `silentMs` without a byte, and {@link AbandonedRequestError} if the client
 * disconnects before the end.
 */
async function* bodyChunks(incoming: IncomingMessage, silentMs: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (;;) {
    const chunk = incoming.read() as Uint8Array | null;
    if (chunk !== null) {
      yield chunk;
      continue;
    }
    if (incoming.readableEnded) return;
    if (incoming.destroyed) throw new AbandonedRequestError();
    // The whole body is buffered, the usual case: its "end" event is still to come.
    if (incoming.complete && incoming.readableLength === 0) return;
    if (!(await changed(incoming, silentMs))) throw new SlowBodyError(`no byte of the body arrived for ${silentMs} ms`);
  }
}

const CHANGES = ["readable", "end", "error", "close"] as const;

/** Waits for more to read, or for the end. False after `mostMs`. */
function changed(incoming: IncomingMessage, mostMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isChanged: boolean) => {
      clearTimeout(timer);
      for (const event of CHANGES) incoming.off(event, onChange);
      resolve(isChanged);
    };
    const onChange = () => end(true);
    // After a pause of the event loop the timer fires before the bytes that arrived meanwhile.
    const timer = setTimeout(() => setImmediate(end, false), mostMs);
    for (const event of CHANGES) incoming.on(event, onChange);
  });
}
