import { MemstemConnectionError, MemstemHttpError } from "./errors.js";
import { type Outgoing, whatOf } from "./sending.js";
import { readBatchLine } from "./streams.js";
import { fromWire } from "./wire-names.js";

/** What an answer's whole text says. */
export type Reader = (text: string, outgoing: Outgoing, response: Response) => unknown;

export const asText: Reader = (text) => text;

export const asAnswer: Reader = (text, outgoing, response) =>
  fromWire(jsonIn(text, outgoing, response), outgoing.route.unmodified);

export const asBatch: Reader = (text, outgoing, response) => {
  const { answers, end } = jsonIn(text, outgoing, response) as { readonly answers: unknown[]; readonly end: unknown };
  return { answers: answers.map(readBatchLine), end: fromWire(end, []) };
};

/** An answer's JSON. Throws where the body is not the service's: JSON that was cut is a broken connection, anything else another server's. */
export function jsonIn(text: string, outgoing: Outgoing, { status, headers }: Response): object {
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
