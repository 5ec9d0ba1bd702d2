import { readBatchLine, textsOf } from "./batch-lines.js";
import { MemstemConnectionError, MemstemHttpError } from "./errors.js";
import { type Outgoing, type Try, whatOf } from "./sending.js";
import { fromWire } from "./wire-names.js";

/** How an answer is read: its text while the try lasts, and what the text says. */
export interface Reader<T> {
  text(response: Response, current: Try): Promise<string>;
  answer(text: string, outgoing: Outgoing, response: Response): T;
}

const wholeText = (response: Response) => response.text();

export const TEXT_ANSWER: Reader<string> = { text: wholeText, answer: (text) => text };

export const UNMODIFIED_ANSWER: Reader<Readonly<Record<string, unknown>>> = {
  text: wholeText,
  answer: (text, outgoing, response) => jsonIn(text, outgoing, response) as Readonly<Record<string, unknown>>,
};

export const JSON_ANSWER: Reader<unknown> = {
  text: wholeText,
  answer: (text, outgoing, response) => fromWire(jsonIn(text, outgoing, response), outgoing.route.unmodified),
};

/** A batch's answer comes in parts, and takes as long as its prompts do. */
export const BATCH_ANSWER: Reader<unknown> = {
  async text(response, current) {
    let text = "";
    for await (const part of textsOf(response, current)) text += part;
    return text;
  },
  answer(text, outgoing, response) {
    const { answers, end } = jsonIn(text, outgoing, response) as { readonly answers: unknown[]; readonly end: unknown };
    return { answers: answers.map(readBatchLine), end: fromWire(end, []) };
  },
};

/** An answer's JSON. Throws where the body is not the service's: JSON that was cut is a broken connection, anything else another server's. */
function jsonIn(text: string, outgoing: Outgoing, { status, headers }: Response): object {
  const type = headers.get("content-type") ?? "no content type";
  const { answers } = outgoing.route;
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json === "object" && json !== null && (answers === undefined || answers in json)) return json;
  } catch (cause) {
    if (/json/i.test(type))
      throw new MemstemConnectionError(`${whatOf(outgoing)} was answered with a part of JSON`, { cause });
  }
  const message = `${whatOf(outgoing)} was answered ${status} (${type}), but not by memstem: is the url right?`;
  throw new MemstemHttpError(message, { status, problem: null, retryAfterMs: null });
}
