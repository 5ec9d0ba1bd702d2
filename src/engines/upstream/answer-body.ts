import {
  type JsonObject,
  listIn,
  parsedJson,
  record,
  withExactNumbers,
  withPlainNumbers,
} from "../../core/text/json.js";
import { type UpstreamAnswer, UpstreamError } from "./upstream.js";

/** One server-sent event, unmodified. */
export interface StreamEvent {
  /** Its bytes with the blank line after it: all events' bytes together are the stream's. */
  readonly bytes: Uint8Array;
  /** Its data, parsed as JSON; undefined where there is none, or it is not JSON. */
  readonly data: unknown;
  /** Whether it is OpenAI's last event, `[DONE]`. */
  readonly isLast: boolean;
}

/** Bytes buffered of one event; a longer one is passed on unparsed. */
const MAX_EVENT_BYTES = 1024 * 1024;

const COLON = 0x3a;
const LF = 0x0a;
const CR = 0x0d;
const BYTE_ORDER_MARK = "\ufeff";

/**
 * Splits a stream of server-sent events, each emitted as soon as it is complete; no byte is added or dropped. A line ends with CR LF, LF or
 * CR, an event with an empty line. Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export async function* eventsOf(
  stream: AsyncIterable<Uint8Array>,
  maxBytes = MAX_EVENT_BYTES,
  parse = parsedJson,
): AsyncGenerator<StreamEvent, void, undefined> {
  const ends = new EventEnds();
  /** Pieces of the incomplete event. */
  let held: Uint8Array[] = [];
  let length = 0;
  let isFirst = true;
  const take = (): StreamEvent => {
    const event = readEvent(held.length === 1 && held[0] ? held[0] : Buffer.concat(held), isFirst, parse);
    held = [];
    length = 0;
    isFirst = false;
    return event;
  };
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
  if (held.length > 0) yield take();
}

/** Finds the ends of events byte by byte, however the stream is chunked. */
class EventEnds {
  /** Whether the current line is empty so far. */
  #isEmpty = true;
  /** The previous line's end; CR LF counts as LF. */
  #lastEnd: "LF" | "CR" | null = null;
  /** The last byte was a CR: a LF that follows belongs to it. */
  #isAfterCr = false;
  /** That CR ended an event, and a LF may follow. */
  #isWaiting = false;

  /** Whether an event ends after this byte, or before it; then the byte has to be passed again. */
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
    // Where lines end with CR alone, no LF is waited for: that would delay the event until the next one.
    const endsAtOnce = isBlank && this.#lastEnd === "CR";
    this.#isWaiting = isBlank && !endsAtOnce;
    this.#lastEnd = "CR";
    return endsAtOnce ? "after" : null;
  }
}

/** With `s`, as U+2028 and U+2029 end no line in an event stream. */
const DATA = /^data: ?(.*)$/s;

function readEvent(bytes: Uint8Array, isFirst: boolean, parse: typeof parsedJson): StreamEvent {
  const text = Buffer.from(bytes).toString("utf8");
  const lines = (isFirst && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text).split(/\r\n|\r|\n/);
  const data = lines.flatMap((line) => DATA.exec(line)?.[1] ?? []).join("\n");
  return { bytes, data: parse(data), isLast: data === "[DONE]" };
}

/** Whether it is a comment alone, which engines and gateways send while they have nothing else, so that nobody cuts the connection. */
export function isComment({ bytes, data }: StreamEvent): boolean {
  return data === undefined && bytes[0] === COLON;
}

/** A comment to send in place of one, or of what stands for it in another API. */
export const KEEP_ALIVE = ": keep-alive\n\n";

/** Bound of what is buffered for conversion, a whole answer or one event; longer than any model's answer. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** An answer's whole body. Throws an {@link UpstreamError} for one of more bytes than `most`. */
export async function wholeOf(
  body: AsyncIterable<Uint8Array>,
  name: string,
  most: number = MAX_ANSWER_BYTES,
): Promise<Buffer> {
  const held: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of body) {
    held.push(bytes);
    length += bytes.length;
    if (length > most) throw new UpstreamError(name, { kind: "broken", cause: "its answer is too long" });
  }
  return Buffer.concat(held);
}

/** A body that is already there. */
export async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

/** A body from its start: the chunks read so far, then the rest. */
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

/** Milliseconds for which the rest of a stream is read after its end. */
const REST_MS = 1_000;

/**
 * The events of a stream that is converted, with their numbers exact, up to the one after which `isOver` says that it has ended. The rest is
 * read in the background, so that the connection is kept where the engine ends its body, too; how that goes is no client's concern.
 */
export async function* eventsToConvert(
  { body, close }: UpstreamAnswer,
  isOver: (event: StreamEvent) => boolean,
): AsyncGenerator<StreamEvent, void, undefined> {
  const events = eventsOf(body, MAX_ANSWER_BYTES, (json) => parsedJson(withExactNumbers(json)));
  let isEnded = false;
  try {
    while (!isEnded) {
      const read = await events.next();
      if (read.done === true) return;
      yield read.value;
      isEnded = isOver(read.value);
    }
  } finally {
    if (isEnded) void readRest(events, close);
    else await events.return();
  }
}

/** Never rejects. */
async function readRest(events: AsyncIterator<StreamEvent>, close: () => void = () => {}): Promise<void> {
  const timer = setTimeout(close, REST_MS);
  timer.unref();
  try {
    while ((await events.next()).done !== true);
  } catch {
    // The answer is whole.
  } finally {
    clearTimeout(timer);
  }
}

/** An unstreamed answer's body, its JSON converted; anything else unmodified. */
export async function* wholeBody(
  { body }: UpstreamAnswer,
  name: string,
  convert: (json: unknown) => unknown,
): AsyncGenerator<Uint8Array, void, undefined> {
  const whole = await wholeOf(body, name);
  const json = parsedJson(withExactNumbers(whole.toString("utf8")));
  // A gateway's own error text: unmodified.
  yield json === undefined ? whole : Buffer.from(withPlainNumbers(JSON.stringify(convert(json))));
}

/** Whether an answer is streamed as server-sent events. */
export function isEventStream({ headers }: Pick<UpstreamAnswer, "headers">): boolean {
  return /^text\/event-stream\b/i.test(headers.find(([name]) => name === "content-type")?.[1] ?? "");
}

/** An answer in another form: an event stream's by `stream`, JSON's by `convert`. */
export function inOtherForm(
  answer: UpstreamAnswer,
  name: string,
  convert: (json: unknown) => unknown,
  stream: () => AsyncIterable<Uint8Array>,
): UpstreamAnswer {
  return { ...answer, body: isEventStream(answer) ? stream() : wholeBody(answer, name, convert) };
}

/** An answer of memprefix's own, in JSON. */
export function jsonAnswer(status: number, json: object): UpstreamAnswer {
  const body = oneChunk(Buffer.from(JSON.stringify(json)));
  return { status, headers: [["content-type", "application/json"]], body };
}

/** The error in an answer that began with 200, or in a chunk of it: its own, or its first choice's, as OpenRouter has it. Null: it has none. */
export function errorIn(answer: unknown): unknown {
  const { error, choices } = record(answer);
  return error ?? record(listIn(choices)[0])["error"] ?? null;
}

/** Makes another API's events of the chunks of a streamed chat completion. */
export interface ChunkConverter {
  /** What stands for the engine's comments. */
  readonly keepAlive: string;
  /** Whether the engine gave a reason for the end. */
  readonly isFinished: boolean;
  /** The events that a chunk stands for. */
  take(chunk: unknown): readonly JsonObject[];
  /** The events of the end. */
  end(): readonly JsonObject[];
}

/**
 * The stream of a chat completion as another API's, whose events have their types as names. An error ends it. Comments go on from the first
 * event on: until then what comes may be a refusal of the prompt, which nobody is to see.
 */
export async function* convertedEvents(
  answer: UpstreamAnswer,
  name: string,
  converter: ChunkConverter,
): AsyncGenerator<Uint8Array, void, undefined> {
  let isBegun = false;
  let isOver = false;
  for await (const event of eventsToConvert(answer, () => isOver)) {
    const { data, isLast } = event;
    const events = isLast || data === undefined ? [] : converter.take(data);
    if (isBegun && isComment(event)) yield Buffer.from(converter.keepAlive);
    isBegun ||= events.length > 0;
    if (events.length > 0) yield Buffer.from(events.map(namedEvent).join(""));
    if (errorIn(data) !== null) return;
    if (isLast) yield* endOf(converter);
    isOver = isLast;
  }
  if (isOver) return;
  // Some engines end without `[DONE]`, others without a reason.
  if (!converter.isFinished) throw new UpstreamError(name, { kind: "broken", cause: "it ended before the answer did" });
  yield* endOf(converter);
}

/** Each of these events may have the whole text: one at a time, so that others are served between them. */
function* endOf(converter: ChunkConverter): Generator<Uint8Array, void, undefined> {
  for (const event of converter.end()) yield Buffer.from(namedEvent(event));
}

function namedEvent(event: JsonObject): string {
  return `event: ${String(event["type"])}\ndata: ${withPlainNumbers(JSON.stringify(event))}\n\n`;
}
