import { StringDecoder } from "node:string_decoder";
import { parsedJson, record } from "../../core/text/json.js";
import { rejoined } from "./answer-body.js";

const MAX_HELD_BYTES = 64 * 1024;
/** Longest time that a stream's first bytes are held: an engine with a queue sends comments for minutes. */
const MAX_HELD_MS = 2_000;

export interface PeekedStream {
  /** The first event that is not about the request's progress, as JSON; null: it is none, or has not come. */
  readonly event: string | null;
  /** Still whole. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Ends the body unread. */
  readonly end: () => Promise<void>;
}

/** Reads the beginning of an event stream, however it is chunked: some engines refuse a prompt in the first event. */
export async function peekAtFirstEvent(stream: AsyncIterable<Uint8Array>): Promise<PeekedStream> {
  const bytes = stream[Symbol.asyncIterator]();
  const held: Uint8Array[] = [];
  const first = new FirstEvent();
  let pending: Promise<IteratorResult<Uint8Array>> | null = null;
  let timer: NodeJS.Timeout | undefined;
  let late: Promise<null> | undefined;
  let length = 0;
  while (first.found === undefined && length <= MAX_HELD_BYTES) {
    pending ??= bytes.next();
    // Awaited only by the body's reader, where it comes too late or breaks off.
    if (held.length > 0) pending.catch(() => {});
    const read: IteratorResult<Uint8Array> | null = await (late === undefined
      ? pending
      : Promise.race([pending, late]).catch(() => null));
    if (read === null) break;
    pending = null;
    if (read.done === true) {
      first.end();
      break;
    }
    held.push(read.value);
    length += read.value.length;
    first.take(read.value);
    late ??= new Promise((resolve) => {
      timer = setTimeout(() => resolve(null), MAX_HELD_MS);
    });
  }
  clearTimeout(timer);
  const rest: AsyncIterator<Uint8Array> = {
    next() {
      const next = pending ?? bytes.next();
      pending = null;
      return next;
    },
    return: async () => (await bytes.return?.()) ?? { done: true, value: undefined },
  };
  return {
    event: first.found ?? null,
    body: rejoined(held, rest),
    end: async () => {
      await bytes.return?.();
    },
  };
}

/** Events that say nothing of the prompt yet: Anthropic's, and those of the Responses API. */
const OF_PROGRESS: ReadonlySet<unknown> = new Set([
  "ping",
  "response.created",
  "response.queued",
  "response.in_progress",
]);
/** `error:` is llama.cpp's. */
const FIELD = /^(data|error): ?(.*)$/s;
const WITHOUT_DATA = /^(?:event|id|retry)?:/;

/** Finds the first event's JSON. It may also stand in the stream as it is, without a field's name. */
class FirstEvent {
  /** Undefined: more is needed; null: the first event is not JSON. */
  found: string | null | undefined;
  readonly #decoder = new StringDecoder("utf8");
  #line = "";
  #data: string[] = [];

  take(chunk: Uint8Array): void {
    this.#line += this.#decoder.write(Buffer.from(chunk));
    const lines = this.#line.split(/\r\n|\n|\r(?!$)/);
    this.#line = lines.pop() ?? "";
    for (const line of lines) this.#takeLine(line);
    // JSON as it is may end without a line break.
    if (this.#line.trimEnd().endsWith("}") && !WITHOUT_DATA.test(this.#line))
      this.#takeWhole([...this.#data, this.#line]);
  }

  end(): void {
    this.#takeLine(this.#line);
    this.#takeLine("");
  }

  #takeLine(line: string): void {
    if (this.found !== undefined) return;
    const text = line.replace(/^\ufeff/, "");
    const [, , data = text] = FIELD.exec(text) ?? [];
    if (text.trim() === "" && this.#data.length > 0) {
      this.found = null;
      return;
    }
    if (text.trim() === "" || WITHOUT_DATA.test(text)) return;
    this.#data.push(data);
    this.#takeWhole(this.#data);
  }

  #takeWhole(lines: readonly string[]): void {
    if (this.found !== undefined) return;
    const [first = ""] = lines;
    const json = [FIELD.exec(first)?.[2] ?? first, ...lines.slice(1)].join("\n");
    const value = json.trimStart().startsWith("{") ? parsedJson(json) : null;
    if (value === undefined) return;
    if (value === null) this.found = null;
    else if (!OF_PROGRESS.has(record(value)["type"])) this.found = json;
    else if (lines === this.#data) this.#data = [];
  }
}
