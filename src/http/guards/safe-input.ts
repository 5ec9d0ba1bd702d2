import { type FieldIssue, InvalidRequestError } from "../../service/base/errors.js";
import { problem } from "../problems/problem.js";
import { answerProblem } from "../problems/problem-shapes.js";
import { cutTarget, isOpenAiPath } from "../requests/request.js";
import { type Guard, PASSED } from "./guard.js";

/*
 * Input that cannot be read safely: ambiguous targets and headers, JSON that is nested too deep or sets a prototype, bytes that are not UTF-8.
 */

/** memstem's own request headers. */
const OWN_HEADER = /^x-memstem-/i;

/**
 * Rejects ambiguous requests: an `x-memstem-` header or a query parameter given twice (Node would join two user ids into a third), and a
 * target whose escapes are not UTF-8, which would be taken literally. The query of an OpenAI-compatible path belongs to the engine.
 */
export function rejectAmbiguous(): Guard {
  return function rejectAmbiguous(c) {
    const { path, query } = cutTarget(c.env?.incoming?.url ?? c.req.url);
    const isEngines = isOpenAiPath(c.req.path);
    if (!isDecodable(path) || (!isEngines && !isDecodable(query))) {
      return { rejection: answerProblem(c, problem(400, "the request target has escapes that are not UTF-8")) };
    }
    const raw = c.env?.incoming?.rawHeaders ?? [];
    const own = raw.filter((name, at) => at % 2 === 0 && OWN_HEADER.test(name)).map((name) => name.toLowerCase());
    const parameters = isEngines || !query.includes("&") ? [] : [...new URLSearchParams(query).keys()];
    const issues = [...repeated(own), ...repeated(parameters)];
    if (issues.length > 0) throw new InvalidRequestError(issues);
    return PASSED;
  };
}

function isDecodable(text: string): boolean {
  if (!text.includes("%")) return true;
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function repeated(names: readonly string[]): FieldIssue[] {
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at));
  return [...twice].map((field) => ({ field, message: "must be given once" }));
}

/**
 * Parses a client's JSON. Throws {@link InvalidRequestError}, before parsing, where it is nested too deep or has a field named `__proto__`;
 * a `SyntaxError` where it is not JSON.
 */
export function parseSafeJson(json: string): unknown {
  rejectUnsafe(json);
  return JSON.parse(json);
}

/** What a body in JSON says; null where it is not JSON in UTF-8. Throws as {@link parseSafeJson} does. */
export function safeJson(body: ArrayBuffer | Uint8Array): { readonly value: unknown } | null {
  try {
    return { value: parseSafeJson(utf8Text(body)) };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  }
}

/** The checks of {@link parseSafeJson}, for text that is parsed elsewhere. */
export function rejectUnsafe(json: string): void {
  rejectDeepNesting(json);
  rejectReservedNames(json);
}

/**
 * Deepest nesting of a body. Recursive code, V8's `JSON.stringify` included, overflows the stack on deep values; and V8 takes half a second
 * to build a value of a million levels.
 */
export const MAX_BODY_NESTING = 128;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Square brackets and braces differ in this bit. */
const BRACE_BIT = 0x20;
const OPENS = 0x5b;
const CLOSES = 0x5d;

/**
 * Throws {@link InvalidRequestError}, naming the body's field, for JSON that is nested more than {@link MAX_BODY_NESTING} levels deep.
 * One pass over the text; whether it is JSON is not checked.
 */
export function rejectDeepNesting(json: string): void {
  let depth = 0;
  /** Start and end of the outermost object's last string. When a level opens, that is the field's name. */
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

/** The index after the closing quote of the string that starts at `from`; the end of the text where it is not closed. */
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

/** The field name `__proto__` in JSON, in any escaping. Inside a string its quotes would be escaped. */
const RESERVED =
  /"(?:_|\\u005f){2}(?:p|\\u0070)(?:r|\\u0072)(?:o|\\u006f)(?:t|\\u0074)(?:o|\\u006f)(?:_|\\u005f){2}"[\t\n\r ]*:/i;

/**
 * Rejects JSON with a field named `__proto__`: assigning it sets a prototype, so the field would be lost silently. Throws
 * {@link InvalidRequestError}.
 */
export function rejectReservedNames(json: string): void {
  if (RESERVED.test(json))
    throw new InvalidRequestError([{ field: "__proto__", message: "must not be a field's name" }]);
}

const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** Decodes UTF-8. Throws a TypeError for other bytes: replacement characters would make two different texts equal. */
export function utf8Text(bytes: ArrayBuffer | Uint8Array): string {
  return UTF_8.decode(bytes);
}
