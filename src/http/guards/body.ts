import type { IncomingMessage } from "node:http";
import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { AbandonedRequestError, InvalidRequestError } from "../../service/base/errors.js";
import { answerProblem, notJson, problem, problemResponse, SlowBodyError } from "../problems/problem.js";
import { BATCH_PATH, type HttpEnvironment } from "../requests/request.js";
import { awaitBody } from "./limits.js";
import { type BodyPlaces, safeJson, utf8Text } from "./safe-json.js";

/** Limits on a body. */
export interface BodyLimits {
  /** Most bytes. */
  readonly maxBytes: number;
  readonly rate: BodyRate;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
  /** Called once per body that is too long. */
  readonly onTooLarge: () => void;
}

/**
 * Reads the body of every request except a batch's, which has limits of its own. Rejects one that is too long, too slow, or one incomplete
 * body too many of its client's. A `content-length` is checked before anything is read.
 */
export function receiveBody(limits: BodyLimits): MiddlewareHandler<HttpEnvironment> {
  const counted = bodyLimit({ maxSize: limits.maxBytes, onError: (c) => tooLarge(c, limits) });
  return async function receiveBody(c, next) {
    if (c.req.path === BATCH_PATH) return next();
    const incoming = c.env?.incoming;
    if (c.req.method === "GET" || c.req.method === "HEAD") {
      await next();
      // No handler reads this body, so nothing else would end the wait for it.
      if (incoming?.complete === false) c.res.headers.set("connection", "close");
      return undefined;
    }
    if (incoming === undefined) return counted(c, next);
    const body = await readBody(c, incoming, limits);
    if (!Buffer.isBuffer(body)) return body;
    // Hono's Node adapter takes a body that was read before it from here.
    Object.assign(incoming, { rawBody: body });
    return next();
  };
}

function tooLarge(c: Pick<Context<HttpEnvironment>, "req">, { maxBytes, onTooLarge }: BodyLimits): Response {
  onTooLarge();
  const message = `must be at most ${maxBytes} bytes`;
  return answerProblem(c, problem(413, `body: ${message}`, [{ field: "body", message }]));
}

/** Reads a body as {@link receiveBody} does. Gives the rejection of one that is too long; throws where it is too slow. */
export async function readBody(
  c: Context<HttpEnvironment>,
  incoming: IncomingMessage,
  limits: BodyLimits,
): Promise<Buffer | Response> {
  const { maxBytes, rate, clock } = limits;
  const header = c.req.header("content-length");
  const length = header === undefined ? null : Number(header);
  if (length !== null && length > maxBytes) return tooLarge(c, limits);
  // Node calls with the head; a body that came in the same packet is there as soon as it has parsed the rest.
  if (incoming.readableLength === 0) await Promise.resolve();
  if (length !== null && length > 0 && incoming.readableLength === length && !incoming.destroyed) {
    const whole: unknown = incoming.read();
    if (Buffer.isBuffer(whole)) return whole;
  }
  const parts: Uint8Array[] = [];
  let received = 0;
  for await (const chunk of bodyChunks(incoming, { rate, clock, onAwaited: () => awaitBody(c) })) {
    received += chunk.length;
    if (received > maxBytes) return tooLarge(c, limits);
    parts.push(chunk);
  }
  const [first] = parts;
  return parts.length === 1 && Buffer.isBuffer(first) ? first : Buffer.concat(parts);
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
  places?: BodyPlaces,
): Promise<{ readonly value: unknown } | null> {
  return safeJson(receivedBody(c) ?? (await c.req.arrayBuffer()), places);
}

/** Whether a `content-type` is JSON's, or one of those that are written in JSON. */
export function isJsonType(type: string): boolean {
  return /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type);
}

/** A body's JSON; the problem where its type or its bytes are not JSON's. Throws {@link InvalidRequestError} for what is not safe to parse. */
export async function readJson(
  c: Context<HttpEnvironment>,
  places?: BodyPlaces,
): Promise<{ readonly value: unknown } | Response> {
  if (!isJsonType(c.req.header("content-type") ?? "")) {
    const message = "must be application/json";
    return problemResponse(problem(415, `content-type: ${message}`, [{ field: "content-type", message }]));
  }
  return (await bodyAsJson(c, places)) ?? problemResponse(notJson());
}

/** The minimum data rate of a request's body. */
export interface BodyRate {
  /** Milliseconds that may pass without a byte, and that a body may take on top of what the rate allows. */
  readonly idleMs: number;
  /** Minimum average; null: no minimum, only {@link idleMs}. */
  readonly bytesPerSecond: number | null;
}

/** Slower than any network that carries a conversation, and fast enough that a body of 4 MiB holds its place for minutes, not hours. */
export const BODY_RATE: BodyRate = { idleMs: 15_000, bytesPerSecond: 4_096 };

/** A body counts as incomplete after this many milliseconds of waiting; most arrive within a few packets. */
const AWAITED_AFTER_MS = 250;

/** What reading a body needs. */
interface BodyChunksParts {
  readonly rate: BodyRate;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
  /** Called once, when the body counts as incomplete. What it throws ends the reading. */
  readonly onAwaited?: () => void;
}

/**
 * A request's body in chunks. Only time spent waiting for bytes counts, so a slow reader costs the client nothing. Throws
 * {@link SlowBodyError}, and {@link AbandonedRequestError} where the client disconnects before the end.
 */
export async function* bodyChunks(
  incoming: IncomingMessage,
  { rate, clock, onAwaited }: BodyChunksParts,
): AsyncGenerator<Uint8Array, void, undefined> {
  let received = 0;
  let waitedMs = 0;
  let silentMs = 0;
  let isAwaited = false;
  for (;;) {
    const chunk = incoming.read() as Uint8Array | null;
    if (chunk !== null) {
      received += chunk.length;
      silentMs = 0;
      yield chunk;
      continue;
    }
    if (incoming.readableEnded) return;
    if (incoming.destroyed) throw new AbandonedRequestError();
    // The whole body was buffered, as mostly: its "end" event is still to come.
    if (incoming.complete && incoming.readableLength === 0) return;
    const most = Math.min(rate.idleMs - silentMs, leftMs(rate, received, waitedMs));
    const since = clock();
    await changed(incoming, isAwaited ? most : Math.min(most, AWAITED_AFTER_MS - waitedMs));
    const waited = clock() - since;
    waitedMs += waited;
    silentMs += waited;
    if (incoming.readableLength > 0 || incoming.complete) continue;
    if (silentMs >= rate.idleMs) throw new SlowBodyError(`no byte of the body arrived for ${rate.idleMs} ms`);
    if (leftMs(rate, received, waitedMs) <= 0) {
      throw new SlowBodyError(`the body arrived at less than ${rate.bytesPerSecond} bytes a second`);
    }
    if (isAwaited || waitedMs < AWAITED_AFTER_MS) continue;
    isAwaited = true;
    onAwaited?.();
  }
}

const CHANGES = ["readable", "end", "error", "close"] as const;

/** Waits until there is something to read, or nothing more to come; at most so many milliseconds. */
function changed(incoming: IncomingMessage, mostMs: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      for (const event of CHANGES) incoming.off(event, done);
      resolve();
    };
    const timer = setTimeout(done, mostMs);
    for (const event of CHANGES) incoming.on(event, done);
  });
}

/** Milliseconds that may still be waited, given the bytes received. */
function leftMs({ idleMs, bytesPerSecond }: BodyRate, received: number, waitedMs: number): number {
  if (bytesPerSecond === null) return Number.POSITIVE_INFINITY;
  return idleMs + (received / bytesPerSecond) * 1_000 - waitedMs;
}
