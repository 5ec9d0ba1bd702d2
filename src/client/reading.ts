import type { MessageLike } from "../service/base/call-types.js";
import type { BatchLine } from "./batch-types.js";
import { MemprefixConnectionError, MemprefixHttpError } from "./errors.js";
import { ROUTES } from "./routes.js";
import { type Outgoing, readProblem, type Try, whatOf } from "./sending.js";
import { fromWire } from "./wire-names.js";

/** What an answer's whole text says. */
export type Reader = (text: string, outgoing: Outgoing, response: Response) => unknown;

export const asText: Reader = (text) => text;

export const asAnswer: Reader = (text, outgoing, response) =>
  fromWire(jsonIn(text, outgoing, response), outgoing.route.unmodified);

export const asBatch: Reader = (text, outgoing, response) => {
  const { answers, end } = jsonIn(text, outgoing, response) as { readonly answers: unknown[]; readonly end: unknown };
  return { answers: answers.map(readBatchLine), end: fromWire(end, []) };
};

/** An answer's JSON. Throws where the body is not the service's: JSON that was cut is a broken connection, anything else another server's. */
export function jsonIn(text: string, outgoing: Outgoing, { status, headers }: Response): object {
  const type = headers.get("content-type") ?? "no content type";
  const { answers } = outgoing.route;
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json === "object" && json !== null && (answers === undefined || answers in json)) return json;
  } catch (cause) {
    if (/json/i.test(type))
      throw new MemprefixConnectionError(`${whatOf(outgoing)} was answered with a part of JSON`, { cause });
  }
  const message = `${whatOf(outgoing)} was answered ${status} (${type}), but not by memprefix: is the url right?`;
  throw new MemprefixHttpError(message, { status, problem: null, retryAfterMs: null });
}

/** Reads the lines of a streamed batch. Throws {@link MemprefixConnectionError} where they end without their last, the counts. */
export async function* batchLinesOf<M extends MessageLike>(
  response: Response,
  current: Try,
): AsyncGenerator<BatchLine<M>, void, undefined> {
  let isWhole = false;
  for await (const line of piecesOf(response, current, "\n")) {
    const read = readBatchLine(jsonOf(line, "a line of the batch's answer")) as BatchLine<M>;
    isWhole ||= "end" in read;
    yield read;
  }
  if (!isWhole) throw new MemprefixConnectionError("the batch's answer ended before its last line");
}

/** The whole pieces of a streamed answer. Ends the exchange when its reader stops. */
async function* piecesOf(response: Response, current: Try, end: string): AsyncGenerator<string, void, undefined> {
  try {
    let rest = "";
    for await (const text of textsOf(response, current)) {
      const pieces = `${rest}${text}`.split(end);
      rest = pieces.pop() ?? "";
      yield* pieces;
    }
  } finally {
    current.cancel();
  }
}

/** An answer or a problem as the caller reads it, of a line or of a list. */
function readBatchLine(json: unknown): unknown {
  if (typeof json !== "object" || json === null || !("problem" in json))
    return fromWire(json, ROUTES.composeLines.unmodified);
  return { ...json, problem: readProblem(json.problem, ROUTES.composeLines.unmodified) ?? json.problem };
}

function jsonOf(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new MemprefixConnectionError(`${what} is not JSON`, { cause });
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

/** All of it. */
export async function joined(texts: AsyncIterable<string>): Promise<string> {
  let all = "";
  for await (const text of texts) all += text;
  return all;
}

/** Requests as lines, to be sent. */
export interface RequestLines {
  readonly content: string | ReadableStream<Uint8Array>;
  /** Takes no more requests: nobody reads their answers. */
  stop(): void;
}

/** One text where the requests are at hand, else a stream that takes them as they are sent. */
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
      if (isStopped) controller.error(new MemprefixConnectionError("the batch was stopped"));
      else if (done === true) controller.close();
      else controller.enqueue(encoder.encode(`${write(value)}\n`));
    },
    cancel: stop,
  });
  return { content, stop: () => void stop().catch(() => {}) };
}
