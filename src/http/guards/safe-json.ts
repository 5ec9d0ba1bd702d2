import { InvalidRequestError } from "../../service/base/errors.js";

/**
 * Parses a client's JSON. Throws `InvalidRequestError`, before anything is parsed, where it is nested too deep or has a field that
 * JavaScript would lose; a `SyntaxError` where it is no JSON.
 */
export function parseSafeJson(json: string): unknown {
  rejectUnsafe(json);
  return JSON.parse(json);
}

/** The first half of {@link parseSafeJson}, for text that others parse. */
export function rejectUnsafe(json: string): void {
  rejectDeepNesting(json);
  rejectReservedNames(json);
}

/**
 * Deepest nesting of a body. Code that reads JSON by recursion, V8's `JSON.stringify` among it, must come to its end before the stack
 * does; and a value of a million levels takes V8 half a second to make.
 */
export const MAX_BODY_NESTING = 128;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** What opens and closes a level: square brackets and braces differ in this bit. */
const BRACE_BIT = 0x20;
const OPENS = 0x5b;
const CLOSES = 0x5d;

/**
 * Throws {@link InvalidRequestError}, naming the body's field, for JSON that is nested more than {@link MAX_BODY_NESTING} levels deep.
 * Reads the text once, before it is parsed; whether it is JSON is not judged.
 */
export function rejectDeepNesting(json: string): void {
  let depth = 0;
  /** Where the last text of the outermost object began and ended: behind a comma or the brace, it is the name of a field. */
  let name: readonly [number, number] = [0, 0];
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      const end = textEnd(json, at);
      if (depth === 1) name = [at, end];
      at = end - 1;
    } else if ((code | BRACE_BIT) === (OPENS | BRACE_BIT)) {
      if (++depth > MAX_BODY_NESTING) throw tooDeep(json.slice(...name));
    } else if ((code | BRACE_BIT) === (CLOSES | BRACE_BIT)) depth--;
  }
}

/** Behind the quote that ends the text which begins at a place; the text's end where none does. */
function textEnd(json: string, from: number): number {
  for (let at = json.indexOf('"', from + 1); at >= 0; at = json.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (json.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
  return json.length;
}

function tooDeep(name: string): InvalidRequestError {
  const message = `must not be nested more than ${MAX_BODY_NESTING} levels deep`;
  return new InvalidRequestError([{ field: fieldOf(name), message }]);
}

function fieldOf(name: string): string {
  try {
    const read: unknown = JSON.parse(name);
    return typeof read === "string" && /^[\w.-]{1,64}$/.test(read) ? read : "body";
  } catch {
    return "body";
  }
}

/** A field's name in JSON that is `__proto__`, however it is escaped. Inside a text its quotes would have backslashes. */
const RESERVED =
  /"(?:_|\\u005f){2}(?:p|\\u0070)(?:r|\\u0072)(?:o|\\u006f)(?:t|\\u0074)(?:o|\\u006f)(?:_|\\u005f){2}"[\t\n\r ]*:/i;

/**
 * Refuses JSON with a field named `__proto__`: JavaScript takes that for something else where objects are put together, and it would be
 * lost without a word. Throws {@link InvalidRequestError}.
 */
export function rejectReservedNames(json: string): void {
  if (RESERVED.test(json))
    throw new InvalidRequestError([{ field: "__proto__", message: "must not be a field's name" }]);
}

const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** Reads text. Throws a TypeError for bytes that are no UTF-8, which would else be replaced: two different texts would become one. */
export function utf8Text(bytes: ArrayBuffer | Uint8Array): string {
  return UTF_8.decode(bytes);
}
