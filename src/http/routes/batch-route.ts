import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { AbandonedRequestError } from "../../service/base/errors.js";
import { type LinkedSignal, linkedSignal } from "../../service/base/linked-signal.js";
import { type BatchEvent, type BatchInput, composeBatch, MAX_BATCH } from "../../service/batch/batch.js";
import { readOptions } from "../../service/fields/read-options.js";
import * as wire from "../contracts/batch-contract.js";
import { operation } from "../contracts/operations.js";
import { type BodyRate, bodyChunks, readBody } from "../guards/body.js";
import { awaitBody } from "../guards/limits.js";
import { safeJson } from "../guards/safe-input.js";
import { BodyShareError, notJson, problem, problemResponse, SlowBodyError } from "../problems/problem.js";
import { BATCH_PATH, type HttpEnvironment } from "../requests/request.js";
import { batchLines } from "./batch-lines.js";

/** What the route needs. */
export interface BatchParts {
  /** Most bytes of one request. */
  readonly maxBodyBytes: number;
  /** Minimum data rate; of a batch in lines only the idle time-out holds. */
  readonly bodyRate: BodyRate;
  /** Called with internal faults. */
  readonly onFault: (error: unknown) => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

const NDJSON = "application/x-ndjson";
const JSON_TYPE = /^application\/([\w.-]+\+)?json\s*(;|$)/i;
const NDJSON_TYPE = /^application\/(x-ndjson|ndjson|jsonl|x-jsonlines)\s*(;|$)/i;
/** Most bytes of a batch in one JSON document, which is held in memory whole; one in lines has no limit. */
const MAX_DOCUMENT_BYTES = 128 * 1024 * 1024;
/** Milliseconds between progress lines, at least. */
const PROGRESS_EVERY_MS = 1_000;

/**
 * `POST /compose/batch`: many requests, planned together. JSON or NDJSON, in and out; answers are streamed. A client that disconnects stops
 * the batch.
 */
export function addBatchRoute(app: OpenAPIHono<HttpEnvironment>, parts: BatchParts): void {
  app.openAPIRegistry.registerPath(
    operation("composeBatch", {
      method: "post",
      path: BATCH_PATH,
      query: wire.batchQuery,
      body: { "application/json": wire.batchBody, [NDJSON]: wire.batchRequest },
      says: "A stream. NDJSON if the request is, or if `accept` asks for it.",
      answer: { "application/json": wire.batchResult, [NDJSON]: wire.batchLine },
    }),
  );
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
  const { clock } = parts;
  const incoming = c.env?.incoming;
  let inputs: AsyncIterable<BatchInput> | Iterable<BatchInput>;
  let workers: readonly string[] | null = namedInQuery ?? null;
  if (isLines) {
    // No minimum rate, only the idle time-out.
    const pace = { rate: { ...parts.bodyRate, bytesPerSecond: null }, clock, onAwaited: () => awaitBody(c) };
    const chunks = incoming === undefined ? (c.req.raw.body ?? []) : bodyChunks(incoming, pace);
    inputs = batchLines(chunks, { maxBytes: parts.maxBodyBytes, maxRequests: MAX_BATCH });
  } else {
    const limits = { maxBytes: MAX_DOCUMENT_BYTES, rate: parts.bodyRate, clock, onTooLarge: () => {} };
    const body = incoming === undefined ? await c.req.arrayBuffer() : await readBody(c, incoming, limits);
    if (body instanceof Response) return body;
    const given = safeJson(body);
    if (given === null) return problemResponse(notJson());
    const document = wire.readBatch(given.value);
    inputs = document.inputs;
    workers = document.workers;
  }
  const events = composeBatch(c.get("memstem").batches, inputs, {
    window: isLines ? window : MAX_BATCH,
    workers,
    signal,
  });
  const asLines = isLines || NDJSON_TYPE.test(c.req.header("accept") ?? "");
  const texts = asLines ? linesFor(events, clock) : jsonFor(events);
  return new Response(streamOf(texts, client, parts.onFault), {
    headers: { "content-type": asLines ? NDJSON : "application/json" },
  });
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

/** Streams texts; stops their generator when the client stops reading. */
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

/** Whether reading the body failed by the client's doing: it disconnected, or was too slow. */
function isClientsDoing(error: unknown): boolean {
  return error instanceof AbandonedRequestError || error instanceof SlowBodyError || error instanceof BodyShareError;
}
