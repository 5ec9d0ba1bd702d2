import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { AbandonedRequestError, InvalidRequestError } from "../../service/base/errors.js";
import { type LinkedSignal, linkedSignal } from "../../service/base/linked-signal.js";
import { type BatchEvent, type BatchInput, composeBatch, MAX_BATCH } from "../../service/batch/batch.js";
import { readOptions } from "../../service/fields/read-options.js";
import * as wire from "../contracts/batch-contract.js";
import { REFUSALS } from "../contracts/openapi-access.js";
import { type BodyPace, bodyChunks } from "../guards/body-pace.js";
import { awaitBody } from "../guards/pending.js";
import { parseSafely } from "../guards/safe-json.js";
import { notJson, problem, problemResponse, problemSchema } from "../problems/problem.js";
import { BodyShareError, SlowBodyError } from "../problems/request-errors.js";
import type { HttpEnvironment } from "../requests/environment.js";
import { BATCH_PATH } from "../requests/paths.js";
import { utf8Text } from "../requests/utf8.js";
import { batchLines } from "./batch-input.js";

/** What the route needs. */
export interface BatchParts {
  /** Most bytes of one request. */
  readonly maxBodyBytes: number;
  /** Most bytes of a JSON batch; one that comes line by line has no end. */
  readonly maxBatchBytes: number;
  /** How fast it must come; one that comes line by line has only to come. */
  readonly bodyPace: BodyPace;
  /** Called with what a batch threw that is nobody's mistake but ours. */
  readonly onFault: (error: unknown) => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

const NDJSON = "application/x-ndjson";
const JSON_TYPE = /^application\/([\w.-]+\+)?json\s*(;|$)/i;
const NDJSON_TYPE = /^application\/(x-ndjson|ndjson|jsonl|x-jsonlines)\s*(;|$)/i;
/** Lines that say how far a batch got come at most this often. */
const PROGRESS_EVERY_MS = 1_000;

/**
 * `POST /compose/batch`: many requests at once, planned together. JSON or a line for each, in and out; answers are sent as they are made.
 * A client that goes away stops it.
 */
export function addBatchRoute(app: OpenAPIHono<HttpEnvironment>, parts: BatchParts): void {
  app.openAPIRegistry.registerPath({
    method: "post",
    path: BATCH_PATH,
    summary: "Compose many prompts, ordered and scheduled together",
    request: {
      query: wire.batchQuery,
      body: {
        required: true,
        content: { "application/json": { schema: wire.batchBody }, [NDJSON]: { schema: wire.batchRequest } },
      },
    },
    responses: {
      200: {
        description: "As they are composed; lines where they came so or are asked for by `accept`",
        content: { "application/json": { schema: wire.batchResult }, [NDJSON]: { schema: wire.batchLine } },
      },
      ...REFUSALS,
      default: { description: "A problem", content: { "application/problem+json": { schema: problemSchema } } },
    },
  });
  app.post(BATCH_PATH, (c) => answerBatch(c, parts));
}

async function answerBatch(c: Context<HttpEnvironment>, parts: BatchParts): Promise<Response> {
  const type = c.req.header("content-type") ?? "";
  const { window, workers: namedInQuery } = readOptions(wire.batchQuery, c.req.query());
  const isLines = NDJSON_TYPE.test(type);
  if (!isLines && !JSON_TYPE.test(type)) {
    const message = `must be application/json or ${NDJSON}`;
    return problemResponse(problem(415, `content-type: ${message}`, [{ field: "content-type", message }]));
  }
  const client = linkedSignal(c.req.raw.signal);
  const { signal } = client;
  let inputs: AsyncIterable<BatchInput> | Iterable<BatchInput>;
  let workers: readonly string[] = namedInQuery ?? [];
  if (isLines) {
    // As slowly as it likes, but for silence.
    const body = bodyOf(c, { ...parts.bodyPace, bytesPerSecond: null });
    inputs = batchLines(body, { maxBytes: parts.maxBodyBytes, maxRequests: MAX_BATCH });
  } else {
    const given = await readJson(bodyOf(c, parts.bodyPace), parts.maxBatchBytes);
    if (given instanceof Response) return given;
    const document = wire.readBatch(given);
    inputs = document.inputs;
    workers = document.workers;
  }
  const events = composeBatch(c.get("memstem"), inputs, { window: isLines ? window : MAX_BATCH, workers, signal });
  const asLines = isLines || NDJSON_TYPE.test(c.req.header("accept") ?? "");
  const texts = asLines ? linesFor(events, parts.clock) : jsonFor(events);
  return new Response(streamOf(texts, client, parts.onFault), {
    headers: { "content-type": asLines ? NDJSON : "application/json" },
  });
}

/** A request's body as it comes. */
function bodyOf(c: Context<HttpEnvironment>, pace: BodyPace): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  const incoming = c.env?.incoming;
  return incoming === undefined
    ? (c.req.raw.body ?? [])
    : bodyChunks(incoming, { pace, onAwaited: () => awaitBody(c) });
}

/** A body's JSON; the problem where it is too long or none. */
async function readJson(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, maxBytes: number): Promise<unknown> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes) {
      const message = `must be at most ${maxBytes} bytes`;
      return problemResponse(problem(413, `body: ${message}`, [{ field: "body", message }]));
    }
    parts.push(chunk);
  }
  try {
    return parseSafely(utf8Text(Buffer.concat(parts)));
  } catch (error) {
    if (error instanceof InvalidRequestError) throw error;
    return problemResponse(notJson());
  }
}

async function* linesFor(
  events: AsyncIterable<BatchEvent>,
  clock: () => number,
): AsyncGenerator<string, void, undefined> {
  let last = clock();
  for await (const event of events) {
    if (event.kind === "progress") {
      if (clock() - last < PROGRESS_EVERY_MS) continue;
      last = clock();
    }
    yield `${JSON.stringify(wire.writeBatchEvent(event))}\n`;
  }
}

async function* jsonFor(events: AsyncIterable<BatchEvent>): AsyncGenerator<string, void, undefined> {
  let before = '{"answers":[';
  for await (const event of events) {
    if (event.kind === "progress") continue;
    const written = JSON.stringify(wire.writeBatchEvent(event));
    if (event.kind === "end") yield `${before === "," ? "" : before}],${written.slice(1)}`;
    else yield `${before}${written}`;
    before = ",";
  }
}

/** Sends texts as they come; stops what makes them when nobody reads any more. */
function streamOf(
  texts: AsyncGenerator<string, void, undefined>,
  client: LinkedSignal,
  onFault: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await texts.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value));
      } catch (error) {
        if (!client.signal.aborted && !isClientsDoing(error)) onFault(error);
        controller.error(error);
      }
    },
    async cancel() {
      client.abort();
      await texts.return();
    },
  });
}

/** What reading a request's body throws when its client goes away before it ends, or is too slow. */
function isClientsDoing(error: unknown): boolean {
  return error instanceof AbandonedRequestError || error instanceof SlowBodyError || error instanceof BodyShareError;
}
