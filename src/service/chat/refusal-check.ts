import { isEventStream } from "../../engines/upstream/answer-body.js";
import { mayRefusePrompt, type PromptRefusal, readPromptRefusal } from "../../engines/upstream/engine-errors.js";
import type { UpstreamAnswer } from "../../engines/upstream/upstream.js";

/** Buffers a body of up to `maxBytes`: gives its text, null where it is longer, and the body to be read again. */
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

/** A body from its start: the chunks read so far, then the rest. */
async function* rejoined(
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

/** Bytes of an error that are buffered. */
const MAX_ERROR_BYTES = 256 * 1024;
/** Status with which an error inside a stream is read: it has none of its own. */
const IN_STREAM = 400;

/** An engine's answer, checked for a refusal of its prompt. */
export interface RefusalCheck {
  readonly refusal: PromptRefusal | null;
  /** The answer, its body unread. */
  readonly answer: UpstreamAnswer;
  /** Ends the body where it will not be read; null where nothing has to be ended. */
  readonly end: (() => Promise<void>) | null;
}

/** Checks whether an engine refuses a prompt. Rejects with `UpstreamError` where the answer breaks off. */
export async function checkForRefusal(answer: UpstreamAnswer): Promise<RefusalCheck> {
  if (answer.status < 300 && isEventStream(answer)) {
    const { error, body, end } = await peekAtError(answer.body);
    const refusal = error === null ? null : readPromptRefusal(IN_STREAM, error);
    return { refusal, answer: { ...answer, body }, end };
  }
  if (!mayRefusePrompt(answer.status)) return { refusal: null, answer, end: null };
  const { whole, body } = await bufferBody(answer.body, MAX_ERROR_BYTES);
  const refusal = whole === null ? null : readPromptRefusal(answer.status, whole);
  return { refusal, answer: { ...answer, body }, end: null };
}

/** Bytes of an event that are read. */
const MAX_EVENT_BYTES = 64 * 1024;
const EVENT = /^(?:(?:event|id|retry):[^\n]*\n)*(?:data|error): ?(\{[^\n]*\})\r?\n/;

/**
 * Peeks at an event stream's first chunk: some engines start the stream before they refuse the prompt, and say so in its first event. Gives
 * the unread body, that event's JSON where it is an error, and a function that ends the stream if the body is not read.
 */
async function peekAtError(body: AsyncIterable<Uint8Array>): Promise<{
  readonly error: string | null;
  readonly body: AsyncIterable<Uint8Array>;
  readonly end: () => Promise<void>;
}> {
  const bytes = body[Symbol.asyncIterator]();
  const first = await bytes.next();
  const text = first.done === true ? "" : Buffer.from(first.value.subarray(0, MAX_EVENT_BYTES)).toString("utf8");
  const json = EVENT.exec(text)?.[1] ?? "";
  const end = async () => {
    await bytes.return?.();
  };
  return {
    error: json.includes('"error"') ? json : null,
    body: rejoined(first.done === true ? [] : [first.value], bytes),
    end,
  };
}
