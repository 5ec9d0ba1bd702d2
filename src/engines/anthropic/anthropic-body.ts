import { type UpstreamAnswer, UpstreamError } from "../upstream/upstream.js";

/** Bound of what is buffered for conversion, a whole answer or one event; longer than any model's answer. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** An unstreamed answer's body, its JSON converted; anything else unmodified. */
export async function* wholeBody(
  { body }: UpstreamAnswer,
  name: string,
  convert: (json: unknown) => unknown,
): AsyncGenerator<Uint8Array, void, undefined> {
  const held: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of body) {
    held.push(bytes);
    length += bytes.length;
    if (length > MAX_ANSWER_BYTES) throw new UpstreamError(name, { kind: "broken", cause: "its answer is too long" });
  }
  const whole = Buffer.concat(held);
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
