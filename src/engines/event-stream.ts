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

/** Splits a stream of server-sent events into them, each as soon as it is whole. Adds nothing and leaves nothing out. */
export async function* eventsOf(
  stream: AsyncIterable<Uint8Array>,
  maxBytes = MAX_EVENT_BYTES,
): AsyncGenerator<StreamEvent, void, undefined> {
  const growing = new GrowingBytes();
  let held: Uint8Array = new Uint8Array(0);
  for await (const chunk of stream) {
    // A blank line may have begun in what is held.
    let from = Math.max(0, held.length - 3);
    held = held.length === 0 ? chunk : growing.joined(held, chunk);
    for (let end = eventEnd(held, from); end >= 0; end = eventEnd(held, from)) {
      yield readEvent(held.subarray(0, end));
      held = held.subarray(end);
      from = 0;
    }
    if (held.length > maxBytes) {
      yield { bytes: held, data: undefined, isLast: false };
      held = new Uint8Array(0);
    }
  }
  if (held.length > 0) yield readEvent(held);
}

/** Joins what comes in small pieces without copying all of it for each. Bytes that were given stay as they are. */
class GrowingBytes {
  #room = new Uint8Array(0);
  /** Of the room, how much is taken. */
  #length = 0;

  /** What was joined last, or its end, with more behind it. */
  joined(held: Uint8Array, more: Uint8Array): Uint8Array {
    const isAtEnd = held.buffer === this.#room.buffer && held.byteOffset + held.length === this.#length;
    if (!isAtEnd || this.#length + more.length > this.#room.length) {
      this.#room = new Uint8Array(2 * (held.length + more.length));
      this.#room.set(held);
      this.#length = held.length;
    }
    const from = this.#length - held.length;
    this.#room.set(more, this.#length);
    this.#length += more.length;
    return this.#room.subarray(from, this.#length);
  }
}

/** Where the first event ends, behind its blank line; -1 where it is not whole. */
function eventEnd(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(LF, from); at >= 0; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at + 1] === LF) return at + 2;
    if (bytes[at + 1] === CR && bytes[at + 2] === LF) return at + 3;
  }
  return -1;
}

/** Dot matches every character: U+2028 and U+2029, which JSON leaves as they are, end no line here. */
const DATA = /^data: ?(.*)$/s;

function readEvent(bytes: Uint8Array): StreamEvent {
  const lines = Buffer.from(bytes).toString("utf8").split(/\r?\n/);
  const data = lines.flatMap((line) => DATA.exec(line)?.[1] ?? []).join("\n");
  const isLast = data === "[DONE]";
  try {
    return { bytes, data: data === "" || isLast ? undefined : (JSON.parse(data) as unknown), isLast };
  } catch {
    // What an engine says in its own words.
    return { bytes, data: undefined, isLast };
  }
}
