import type { MessageLike } from "../service/base/call-options.js";
import type { BatchLine } from "./answers.js";
import { MemstemConnectionError } from "./errors.js";
import { readProblem } from "./refusals.js";
import { ROUTES } from "./routes.js";
import type { Try } from "./sending.js";
import { fromWire } from "./wire-names.js";

/** Reads the lines of a streamed batch. Throws {@link MemstemConnectionError} where they end without their last, the counts. */
export async function* batchLinesOf<M extends MessageLike>(
  response: Response,
  current: Try,
): AsyncGenerator<BatchLine<M>, void, undefined> {
  let isWhole = false;
  const reader = textsOf(response, current);
  try {
    let rest = "";
    for await (const text of reader) {
      const lines = `${rest}${text}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const read = readBatchLine(parsed(line)) as BatchLine<M>;
        isWhole ||= "end" in read;
        yield read;
      }
    }
  } finally {
    current.cancel();
  }
  if (!isWhole) throw new MemstemConnectionError("the batch's answer ended before its last line");
}

/** An answer or a problem as the caller reads it, of a line or of a list. */
export function readBatchLine(json: unknown): unknown {
  if (typeof json !== "object" || json === null || !("problem" in json))
    return fromWire(json, ROUTES.composeLines.unmodified);
  return { ...json, problem: readProblem(json.problem, ROUTES.composeLines.unmodified) ?? json.problem };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new MemstemConnectionError("a line of the batch's answer is not JSON", { cause });
  }
}

/** A body's text as it comes. Stops the transfer when its reader stops. */
export async function* textsOf({ body }: Response, current: Try): AsyncGenerator<string, void, undefined> {
  if (body === null) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      current.touch();
      const { done, value } = await reader.read();
      current.hold();
      if (done) break;
      yield decoder.decode(value, { stream: true });
    }
  } catch (error) {
    throw current.named(error);
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Requests as lines, to be sent. */
export interface RequestLines {
  readonly content: string | ReadableStream<Uint8Array>;
  /** Asks for no more requests: nobody reads their answers. */
  stop(): void;
}

/** One text where the requests are at hand, else a stream that asks for them as they are sent. */
export function requestLines(
  requests: Iterable<unknown> | AsyncIterable<unknown>,
  write: (request: unknown) => string,
): RequestLines {
  if (Array.isArray(requests)) {
    return { content: requests.map((request) => `${write(request)}\n`).join(""), stop: () => {} };
  }
  const all = Symbol.asyncIterator in requests ? requests[Symbol.asyncIterator]() : requests[Symbol.iterator]();
  const encoder = new TextEncoder();
  let isStopped = false;
  const stop = async () => {
    isStopped = true;
    await all.return?.();
  };
  const content = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await all.next();
      if (isStopped) controller.error(new MemstemConnectionError("the batch was stopped"));
      else if (done === true) controller.close();
      else controller.enqueue(encoder.encode(`${write(value)}\n`));
    },
    cancel: stop,
  });
  return { content, stop: () => void stop().catch(() => {}) };
}
