import { parsedJson, record } from "../../core/text/json.js";
import { eventsOf, rejoined, type StreamEvent } from "./answer-body.js";

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
  const events = eventsOf(stream);
  const held: Uint8Array[] = [];
  let pending: Promise<IteratorResult<StreamEvent>> | null = null;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), MAX_HELD_MS);
  });
  let event: string | null | undefined;
  for (let length = 0; event === undefined && length <= MAX_HELD_BYTES; ) {
    pending = events.next();
    // An event that comes too late, or breaks off, is left to the body's reader.
    const read: IteratorResult<StreamEvent> | null = await Promise.race([pending, late]).catch(() => null);
    if (read === null) break;
    pending = null;
    if (read.done === true) break;
    held.push(read.value.bytes);
    length += read.value.bytes.length;
    event = jsonIn(read.value.bytes);
  }
  clearTimeout(timer);
  const rest: AsyncIterator<Uint8Array> = {
    async next() {
      const read = await (pending ?? events.next());
      pending = null;
      return read.done === true ? read : { done: false, value: read.value.bytes };
    },
    async return() {
      await events.return();
      return { done: true, value: undefined };
    },
  };
  return { event: event ?? null, body: rejoined(held, rest), end: async () => void (await events.return()) };
}

/** Events that say nothing of the prompt yet: Anthropic's, and those of the Responses API. */
const OF_PROGRESS: ReadonlySet<unknown> = new Set([
  "ping",
  "response.created",
  "response.queued",
  "response.in_progress",
]);
/** `error:` is llama.cpp's. */
const FIELD = /^(?:data|error): ?(.*)$/s;
const WITHOUT_DATA = /^(?:event|id|retry)?:|^\s*$/;

/** An event's JSON, which may also stand in the stream without a field's name. Null: it is not JSON; undefined: it says nothing yet. */
function jsonIn(bytes: Uint8Array): string | null | undefined {
  const lines = Buffer.from(bytes)
    .toString("utf8")
    .replace(/^\ufeff/, "")
    .split(/\r\n|\r|\n/)
    .filter((line) => !WITHOUT_DATA.test(line));
  if (lines.length === 0) return undefined;
  const json = lines.map((line) => FIELD.exec(line)?.[1] ?? line).join("\n");
  const value = parsedJson(json);
  if (!json.trimStart().startsWith("{") || value === undefined) return null;
  return OF_PROGRESS.has(record(value)["type"]) ? undefined : json;
}
