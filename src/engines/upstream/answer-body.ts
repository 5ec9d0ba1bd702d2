import { parsedJson } from "../../core/text/json.js";
import { type UpstreamAnswer, UpstreamError } from "./upstream.js";

/** One server-sent event. `bytes` include the blank line after it: all events' bytes together are the stream's. */
export interface StreamEvent {
  readonly bytes: Uint8Array;
  /** Parsed as JSON; undefined where there is none, or it is not JSON. */
  readonly data: unknown;
  /** Whether it is OpenAI's `[DONE]`. */
  readonly isLast: boolean;
}

/** A longer event is forwarded unparsed. */
const MAX_EVENT_BYTES = 1024 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const BYTE_ORDER_MARK = "\ufeff";

/** Splits a stream of server-sent events without changing a byte. Source: https://html.spec.whatwg.org/multipage/server-sent-events.html */
export async function* eventsOf(
  stream: AsyncIterable<Uint8Array>,
  maxBytes = MAX_EVENT_BYTES,
): AsyncGenerator<StreamEvent, void, undefined> {
  const ends = new EventEnds();
  let held: Uint8Array[] = [];
  let length = 0;
  let isFirst = true;
  const take = (): StreamEvent => {
    const event = readEvent(held.length === 1 && held[0] ? held[0] : Buffer.concat(held), isFirst);
    held = [];
    length = 0;
    isFirst = false;
    return event;
  };
  try {
    for await (const chunk of stream) {
      let from = 0;
      for (let at = 0; at < chunk.length; at++) {
        let end = ends.take(chunk[at] ?? 0);
        while (end !== null) {
          const after = end === "before" ? at : at + 1;
          if (after > from) held.push(chunk.subarray(from, after));
          from = after;
          yield take();
          end = end === "before" ? ends.take(chunk[at] ?? 0) : null;
        }
      }
      if (from < chunk.length) held.push(chunk.subarray(from));
      length += chunk.length - from;
      if (length > maxBytes) yield { ...take(), data: undefined, isLast: false };
    }
  } catch (error) {
    // The client gets what arrived of an incomplete event.
    if (held.length > 0) yield { ...take(), data: undefined, isLast: false };
    throw error;
  }
  if (held.length > 0) yield take();
}

/** Finds the ends of events byte by byte, however the stream is chunked. */
class EventEnds {
  #isEmpty = true;
  /** The previous line's end; CR LF counts as LF. */
  #lastEnd: "LF" | "CR" | null = null;
  /** The last byte was a CR: a LF that follows belongs to it. */
  #isAfterCr = false;
  /** That CR ended an event, and a LF may follow. */
  #isWaiting = false;

  /** Whether an event ends after or before this byte. After `before`, pass the byte again. */
  take(byte: number): "after" | "before" | null {
    const isAfterCr = this.#isAfterCr;
    const isWaiting = this.#isWaiting;
    this.#isAfterCr = false;
    this.#isWaiting = false;
    if (isAfterCr && byte === LF) {
      this.#lastEnd = "LF";
      return isWaiting ? "after" : null;
    }
    if (isWaiting) return "before";
    const isBlank = this.#isEmpty;
    this.#isEmpty = byte === LF || byte === CR;
    if (!this.#isEmpty) return null;
    if (byte === LF) {
      this.#lastEnd = "LF";
      return isBlank ? "after" : null;
    }
    this.#isAfterCr = true;
    // Where lines end with CR alone, waiting for a LF would delay the event until the next one.
    const endsAtOnce = isBlank && this.#lastEnd === "CR";
    this.#isWaiting = isBlank && !endsAtOnce;
    this.#lastEnd = "CR";
    return endsAtOnce ? "after" : null;
  }
}

/** `s`: U+2028 and U+2029 end no line in an event stream. */
const DATA = /^data: ?(.*)$/s;

function readEvent(bytes: Uint8Array, isFirst: boolean): StreamEvent {
  const text = Buffer.from(bytes).toString("utf8");
  const lines = (isFirst && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text).split(/\r\n|\r|\n/);
  const data = lines.flatMap((line) => DATA.exec(line)?.[1] ?? []).join("\n");
  return { bytes, data: parsedJson(data), isLast: data === "[DONE]" };
}

const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** The text of a whole body. Throws an {@link UpstreamError} for more than `most` bytes. */
export async function wholeOf(
  body: AsyncIterable<Uint8Array>,
  name: string,
  most: number = MAX_ANSWER_BYTES,
): Promise<string> {
  const { whole, body: unread } = await bufferBody(body, most);
  if (whole !== null) return whole;
  for await (const _ of unread) break;
  throw new UpstreamError(name, { kind: "broken", cause: "its answer is too long" });
}

/** Buffers a body of up to `maxBytes`. Returns its text, null if it is longer, and the body to read again. */
export async function bufferBody(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<{ readonly whole: string | null; readonly body: AsyncIterable<Uint8Array> }> {
  const iterator = body[Symbol.asyncIterator]();
  const held: Uint8Array[] = [];
  let length = 0;
  for (let read = await iterator.next(); !read.done; read = await iterator.next()) {
    held.push(read.value);
    length += read.value.length;
    if (length > maxBytes) return { whole: null, body: rejoined(held, iterator) };
  }
  return { whole: Buffer.concat(held).toString("utf8"), body: rejoined(held, iterator) };
}

export async function* rejoined(
  held: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* held;
    for (let read = await rest.next(); !read.done; read = await rest.next()) yield read.value;
  } finally {
    await rest.return?.();
  }
}

export function isEventStream({ headers }: Pick<UpstreamAnswer, "headers">): boolean {
  return /^text\/event-stream\b/i.test(headers.find(([name]) => name === "content-type")?.[1] ?? "");
}
