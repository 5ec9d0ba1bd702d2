import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { AbandonedRequestError, InvalidRequestError } from "../../service/base/errors.js";
import { linkedSignal } from "../../service/base/linked-signal.js";
import { type BatchEvent, type BatchInput, composeBatch, MAX_BATCH } from "../../service/batch/batch.js";
import { readOptions } from "../../service/fields/fields.js";
import * as wire from "../contracts/batch-contract.js";
import { readBatchInput, tooMany } from "../contracts/batch-contract.js";
import { operation } from "../contracts/operations.js";
import { isJsonType, jsonBody, lineChunks } from "../guards/body.js";
import type { BodyLimits, SharedBound } from "../guards/limits.js";
import { linesOf } from "../guards/lines.js";
import { parseSafeJson } from "../guards/safe-json.js";
import { BodyBytesError, notJson, problem, problemResponse, SlowBodyError } from "../problems/problem.js";
import { BATCH_PATH, type HttpEnvironment, isLinesType } from "../requests/request.js";
import { streamed } from "./chat-route.js";

export interface LineBounds {
  /** Of one request. */
  readonly maxBytes: number;
  /** The first request over this limit is an error, and reading stops. */
  readonly maxRequests: number;
}

/** Reads a batch in NDJSON: one request per line. */
export async function* batchLines(
  stream: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { maxBytes, maxRequests }: LineBounds,
): AsyncGenerator<BatchInput, void, undefined> {
  let index = 0;
  for await (const line of linesOf(stream, maxBytes)) {
    if (index === maxRequests) {
      yield { index, error: tooMany() };
      return;
    }
    if ("tooLong" in line) yield { index, error: invalid(`must be at most ${maxBytes} bytes`) };
    else if ("notText" in line) yield { index, error: notJsonError() };
    else yield readLine(index, line.text);
    index++;
  }
}

function readLine(index: number, text: string): BatchInput {
  try {
    return readBatchInput(index, parse(text));
  } catch (error) {
    return { index, error };
  }
}

function parse(text: string): unknown {
  try {
    return parseSafeJson(text);
  } catch (error) {
    throw error instanceof SyntaxError ? notJsonError() : error;
  }
}

function notJsonError(): InvalidRequestError {
  return invalid("is not JSON");
}

function invalid(message: string): InvalidRequestError {
  return new InvalidRequestError([{ field: "body", message }]);
}

export interface BatchParts {
  readonly limits: BodyLimits;
  /** Bytes of incomplete bodies. */
  readonly bytes: SharedBound;
  readonly onFault: (error: unknown) => void;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
}

const NDJSON = "application/x-ndjson";
const PROGRESS_EVERY_MS = 1_000;

/** `POST /compose/batch`: JSON or NDJSON, in and out; answers are streamed. A client that disconnects stops the batch. */
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
  const { window, warm_start: warmStart, workers = null, planner } = readOptions(wire.batchQuery, c.req.query());
  const isLines = isLinesType(type);
  if (!isLines && !isJsonType(type)) {
    const message = `must be application/json or ${NDJSON}`;
    return problemResponse(problem(415, `content-type: ${message}`, [{ field: "content-type", message }]));
  }
  const client = linkedSignal(c.req.raw.signal);
  const { signal } = client;
  const { clock } = parts;
  let inputs: AsyncIterable<BatchInput> | Iterable<BatchInput>;
  let options: ReturnType<typeof wire.readBatch>["options"] = { workers, planner, warmStart };
  if (isLines) {
    inputs = batchLines(lineChunks(c, parts), { maxBytes: parts.limits.maxBodyBytes, maxRequests: MAX_BATCH });
  } else {
    const given = jsonBody(c);
    if (given === null) return problemResponse(notJson());
    const document = wire.readBatch(given.value);
    inputs = document.inputs;
    options = { ...options, ...document.options };
  }
  const events = composeBatch(c.get("memprefix").batches, inputs, {
    window: isLines ? window : MAX_BATCH,
    ...options,
    signal,
  });
  const asLines = isLines || isLinesType(c.req.header("accept"));
  const bytes = asLines ? linesFor(events, clock) : jsonFor(events);
  const body = streamed(bytes, client, (error, controller) => {
    if (!signal.aborted && !isClientsDoing(error)) parts.onFault(error);
    controller.error(error);
  });
  return new Response(body, { headers: { "content-type": asLines ? NDJSON : "application/json" } });
}

const ENCODER = new TextEncoder();

async function* linesFor(
  events: AsyncIterable<BatchEvent>,
  clock: () => number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let last = clock();
  for await (const event of events) {
    if (event.kind === "progress") {
      if (clock() - last < PROGRESS_EVERY_MS) continue;
      last = clock();
    }
    yield ENCODER.encode(`${JSON.stringify(wire.writeBatchEvent(event))}\n`);
  }
}

async function* jsonFor(events: AsyncIterable<BatchEvent>): AsyncGenerator<Uint8Array, void, undefined> {
  let before = '{"answers":[';
  for await (const event of events) {
    if (event.kind === "progress") continue;
    const written = JSON.stringify(wire.writeBatchEvent(event));
    const text = event.kind === "end" ? `${before === "," ? "" : before}],${written.slice(1)}` : before + written;
    yield ENCODER.encode(text);
    before = ",";
  }
}

/** Whether the client caused the failed read: it disconnected, or was too slow. */
function isClientsDoing(error: unknown): boolean {
  return error instanceof AbandonedRequestError || error instanceof SlowBodyError || error instanceof BodyBytesError;
}
