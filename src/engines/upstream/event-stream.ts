/** One server-sent event as it came. */
export interface StreamEvent {
  /** Its bytes, the blank line behind it included: all events' bytes together are the stream's. */
  readonly bytes: Uint8Array;
  /** What its data is as JSON; undefined where it has none that is. */
  readonly data: unknown;
  /** Whether it is OpenAI's last one: nothing comes behind it. */
  readonly isLast: boolean;
}

/** Bytes of one event that are held to be read; of a longer one the bytes go on unread. */
const MAX_EVENT_BYTES = 1024 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const BYTE_ORDER_MARK = "\ufeff";

/**
 * Splits a stream of server-sent events into them, each as soon as it is whole. Adds nothing and leaves nothing out. A line ends with CR LF,
 * LF or CR, an event with an empty line. Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export async function* eventsOf(
  stream: AsyncIterable<Uint8Array>,
  maxBytes = MAX_EVENT_BYTES,
): AsyncGenerator<StreamEvent, void, undefined> {
  const ends = new EventEnds();
  /** Pieces of the event that is not whole yet. */
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
  for await (const chunk of stream) {
    let from = 0;
    for (let at = 0; at < chunk.length; at++) {
      let end = ends.take(chunk[at] ?? 0);
      while (end !== null) {
        const behind = end === "before" ? at : at + 1;
        if (behind > from) held.push(chunk.subarray(from, behind));
        from = behind;
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

/** Finds where events end, byte by byte, so that it does not matter how a stream was cut. */
class EventEnds {
  /** Whether nothing of the line is there yet. */
  #isEmpty = true;
  /** What ended the line before; a CR that a LF follows counts as one. */
  #lastEnd: "LF" | "CR" | null = null;
  /** A CR ended a line: a LF that follows belongs to it. */
  #isAfterCr = false;
  /** It ended an event, too, and whether a LF follows is not known. */
  #isWaiting = false;

  /** Whether an event ends behind this byte; or before it: then it is to be given again. */
  take(byte: number): "behind" | "before" | null {
    const isAfterCr = this.#isAfterCr;
    const isWaiting = this.#isWaiting;
    this.#isAfterCr = false;
    this.#isWaiting = false;
    if (isAfterCr && byte === LF) {
      this.#lastEnd = "LF";
      return isWaiting ? "behind" : null;
    }
    if (isWaiting) return "before";
    const isBlank = this.#isEmpty;
    this.#isEmpty = byte === LF || byte === CR;
    if (!this.#isEmpty) return null;
    if (byte === LF) {
      this.#lastEnd = "LF";
      return isBlank ? "behind" : null;
    }
    this.#isAfterCr = true;
    // Where lines end with CR alone no LF is waited for: the event would be as late as the next one.
    const endsAtOnce = isBlank && this.#lastEnd === "CR";
    this.#isWaiting = isBlank && !endsAtOnce;
    this.#lastEnd = "CR";
    return endsAtOnce ? "behind" : null;
  }
}

/** Dot matches every character: U+2028 and U+2029, which JSON leaves as they are, end no line here. */
const DATA = /^data: ?(.*)$/s;

function readEvent(bytes: Uint8Array, isFirst: boolean): StreamEvent {
  const text = Buffer.from(bytes).toString("utf8");
  const lines = (isFirst && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text).split(/\r\n|\r|\n/);
  const data = lines.flatMap((line) => DATA.exec(line)?.[1] ?? []).join("\n");
  const isLast = data === "[DONE]";
  try {
    return { bytes, data: data === "" || isLast ? undefined : (JSON.parse(data) as unknown), isLast };
  } catch {
    // What an engine says in its own words.
    return { bytes, data: undefined, isLast };
  }
}
