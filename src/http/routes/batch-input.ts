import { InvalidRequestError } from "../../service/base/errors.js";
import type { BatchInput } from "../../service/batch/batch.js";
import { readBatchInput, tooMany } from "../contracts/batch-contract.js";
import { parseSafely } from "../guards/safe-json.js";
import { linesOf } from "./ndjson.js";

/** Bounds on what is read of a batch. */
export interface LineBounds {
  /** Most bytes of one request. */
  readonly maxBytes: number;
  /** Requests past it are one error, and nothing more is read. */
  readonly maxRequests: number;
}

/** A batch with a request on each line. */
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
    return parseSafely(text);
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
