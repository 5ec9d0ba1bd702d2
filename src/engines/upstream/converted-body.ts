import { type UpstreamAnswer, UpstreamError } from "./upstream.js";

/** Bound of what is buffered for conversion, a whole answer or one event; longer than any model's answer. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

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

/** An unstreamed answer's body, its JSON converted; anything else unmodified. */
export async function* wholeBody(
  { body }: UpstreamAnswer,
  name: string,
  convert: (json: unknown) => unknown,
): AsyncGenerator<Uint8Array, void, undefined> {
  const whole = await wholeOf(body, name);
  let json: unknown;
  try {
    json = JSON.parse(whole.toString("utf8"));
  } catch {
    // A gateway's own error text: unmodified.
    yield whole;
    return;
  }
  yield Buffer.from(JSON.stringify(convert(json)));
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

/** An answer of memstem's own, in JSON. */
export function jsonAnswer(status: number, json: object): UpstreamAnswer {
  const body = oneChunk(Buffer.from(JSON.stringify(json)));
  return { status, headers: [["content-type", "application/json"]], body };
}

/** A server-sent event that has its type as its name, as the streams of Anthropic's and of the Responses API have. */
export function namedEvent(event: Readonly<Record<string, unknown>>): string {
  return `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`;
}
