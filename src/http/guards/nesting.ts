import { InvalidRequestError } from "../../service/base/errors.js";

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
export function refuseDeepNesting(json: string): void {
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
