import type { IncomingMessage } from "node:http";
import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { AbandonedRequestError } from "../../service/base/errors.js";
import {
  answerProblem,
  BodyBytesError,
  notJson,
  problem,
  problemResponse,
  SlowBodyError,
} from "../problems/problem.js";
import { type HttpEnvironment, isStreamed } from "../requests/request.js";
import { type BodyLimits, holdersOf, type SharedBound } from "./limits.js";
import { NEWLINE } from "./lines.js";
import { type BodyPath, safeJson, utf8Text } from "./safe-json.js";

/** What bodies are read with. */
export interface BodyParts {
  readonly limits: BodyLimits;
  /** Bytes of bodies that have not arrived in full, over the whole service. */
  readonly bytes: SharedBound;
  /** Called once per body that is too long. */
  readonly onTooLarge: () => void;
}

/**
 * Reads the body of every request but that of a batch in lines, which is a stream. Rejects one that is too long, that is silent for too long,
 * and one that does not fit beside the others that are being read. A `content-length` is checked before anything is read.
 */
export function receiveBody(parts: BodyParts): MiddlewareHandler<HttpEnvironment> {
  const counted = bodyLimit({ maxSize: parts.limits.maxBodyBytes, onError: (c) => tooLarge(c, parts) });
  return async function receiveBody(c, next) {
    if (isStreamed(c)) return next();
    const incoming = c.env?.incoming;
    if (c.req.method === "GET" || c.req.method === "HEAD") {
      await next();
      // No handler reads this body, so nothing else would end the wait for it.
      if (incoming?.complete === false) c.res.headers.set("connection", "close");
      return undefined;
    }
    if (incoming === undefined) return counted(c, next);
    const body = await readBody(c, incoming, parts);
    if (!Buffer.isBuffer(body)) return body;
    // Hono's Node adapter takes a body that was read before it from here.
    Object.assign(incoming, { rawBody: body });
    return next();
  };
}

function tooLarge(c: Pick<Context<HttpEnvironment>, "req">, { limits, onTooLarge }: BodyParts): Response {
  onTooLarge();
  const message = `must be at most ${limits.maxBodyBytes} bytes`;
  return answerProblem(c, problem(413, `body: ${message}`, [{ field: "body", message }]));
}

/** Reads a body as {@link receiveBody} does. Gives the rejection of one that is too long; throws the other ones. */
async function readBody(
  c: Context<HttpEnvironment>,
  incoming: IncomingMessage,
  parts: BodyParts,
): Promise<Buffer | Response> {
  const { limits, bytes } = parts;
  const header = c.req.header("content-length");
  const length = header === undefined ? null : Number(header);
  if (length !== null && length > limits.maxBodyBytes) return tooLarge(c, parts);
  // Node calls with the head; a body that came in the same packet is there as soon as it has parsed the rest.
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

/** A body that is read line by line, in chunks. Of its bytes only those of an incomplete line count as being read. Throws as {@link bodyChunks} does. */
export async function* lineChunks(
  c: Context<HttpEnvironment>,
  incoming: IncomingMessage,
  { limits, bytes }: Omit<BodyParts, "onTooLarge">,
): AsyncGenerator<Uint8Array, void, undefined> {
  const holders = holdersOf(c);
  let count = 0;
  try {
    for await (const chunk of bodyChunks(incoming, limits.silentMs)) {
      const end = chunk.lastIndexOf(NEWLINE) + 1;
      if (end > 0) {
        bytes.give(count, holders);
        count = 0;
      }
      if (!bytes.take(chunk.length - end, holders)) throw new BodyBytesError();
      count += chunk.length - end;
      yield chunk;
    }
  } finally {
    bytes.give(count, holders);
  }
}

/** What {@link receiveBody} has read; null where the app is not served by Node. */
function receivedBody(c: Context<HttpEnvironment>): Buffer | null {
  const body: unknown = c.env?.incoming && Reflect.get(c.env.incoming, "rawBody");
  return Buffer.isBuffer(body) ? body : null;
}

/** A body's text; null where it is not UTF-8. */
export async function bodyAsText(c: Context<HttpEnvironment>): Promise<string | null> {
  try {
    return utf8Text(receivedBody(c) ?? (await c.req.arrayBuffer()));
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** What a body in JSON says, of any content type; null where it is not JSON in UTF-8. Throws as {@link readJson} does. */
export async function bodyAsJson(
  c: Context<HttpEnvironment>,
  memoriesAt?: BodyPath,
): Promise<{ readonly value: unknown } | null> {
  return safeJson(receivedBody(c) ?? (await c.req.arrayBuffer()), memoriesAt);
}

/** Whether a `content-type` is JSON's, or one of those that are written in JSON. */
export function isJsonType(type: string): boolean {
  return /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type);
}

/** A body's JSON; the problem where its type or its bytes are not JSON's. Throws {@link InvalidRequestError} for what is not safe to parse. */
export async function readJson(
  c: Context<HttpEnvironment>,
  memoriesAt?: BodyPath,
): Promise<{ readonly value: unknown } | Response> {
  if (!isJsonType(c.req.header("content-type") ?? "")) {
    const message = "must be application/json";
    return problemResponse(problem(415, `content-type: ${message}`, [{ field: "content-type", message }]));
  }
  return (await bodyAsJson(c, memoriesAt)) ?? problemResponse(notJson());
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
    // The whole body was buffered, as mostly: its "end" event is still to come.
    if (incoming.complete && incoming.readableLength === 0) return;
    if (!(await changed(incoming, silentMs))) throw new SlowBodyError(`no byte of the body arrived for ${silentMs} ms`);
  }
}

const CHANGES = ["readable", "end", "error", "close"] as const;

/** Waits until there is something to read, or nothing more to come. False after `mostMs`. */
function changed(incoming: IncomingMessage, mostMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isChanged: boolean) => {
      clearTimeout(timer);
      for (const event of CHANGES) incoming.off(event, onChange);
      resolve(isChanged);
    };
    const onChange = () => end(true);
    // After a pause of the event loop the timer comes before the bytes that arrived meanwhile.
    const timer = setTimeout(() => setImmediate(end, false), mostMs);
    for (const event of CHANGES) incoming.on(event, onChange);
  });
}
