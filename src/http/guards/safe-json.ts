import { textEnd } from "../../core/text/json.js";
import { InvalidRequestError } from "../../service/base/errors.js";
import { UnreadMemory } from "../../service/fields/fields.js";

/*
 * Unsafe JSON: nested too deep, with a field that sets a prototype, or not UTF-8. It is rejected, except in a chat's memories, where only the
 * memory is dropped.
 */

/** Fields on the way to a part of a body. */
export type BodyPath = readonly string[];

/** Recursive code, V8's `JSON.stringify` included, overflows the stack on deep values. */
export const MAX_BODY_NESTING = 128;
/** V8 takes half a second to build a value of a million levels. */
const MAX_PARSED_NESTING = 500_000;

const TOO_DEEP = `must not be nested more than ${MAX_BODY_NESTING} levels deep`;
const NAMED = "must not have a field named __proto__";

/**
 * Parses a client's JSON. Replaces unsafe memories with {@link UnreadMemory}; throws {@link InvalidRequestError} for other unsafe parts and
 * a `SyntaxError` for text that is not JSON.
 *
 * @param memoriesAt path of a chat's memories; absent: there are none
 */
export function parseSafeJson(json: string, memoriesAt?: BodyPath): unknown {
  if (!isUnsafe(json)) return JSON.parse(json);
  if (isDeeperThan(json, MAX_PARSED_NESTING)) throw new InvalidRequestError([{ field: "body", message: TOO_DEEP }]);
  const body: unknown = JSON.parse(json);
  if (memoriesAt !== undefined) dropUnsafeMemories(body, memoriesAt);
  const fields = typeof body === "object" && body !== null && !Array.isArray(body) ? body : { body };
  for (const [name, value] of Object.entries(fields)) {
    const problem = name === "__proto__" ? NAMED : problemIn(value, MAX_BODY_NESTING - 1);
    if (problem === NAMED)
      throw new InvalidRequestError([{ field: "__proto__", message: "must not be a field's name" }]);
    const field = /^[\w.-]{1,64}$/.test(name) ? name : "body";
    if (problem !== null) throw new InvalidRequestError([{ field, message: problem }]);
  }
  return body;
}

const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** Decodes UTF-8. Throws a TypeError for other bytes: replacement characters would make two different texts equal. */
export function utf8Text(bytes: Uint8Array): string {
  return UTF_8.decode(bytes);
}

/** The field name `__proto__` in JSON, in any escaping. Inside a string its quotes would be escaped. */
const RESERVED =
  /"(?:_|\\u005f){2}(?:p|\\u0070)(?:r|\\u0072)(?:o|\\u006f)(?:t|\\u0074)(?:o|\\u006f)(?:_|\\u005f){2}"[\t\n\r ]*:/i;

/** Whether some part of JSON is unsafe. Does not check that it is JSON. O(length). */
export function isUnsafe(json: string): boolean {
  return isDeeperThan(json, MAX_BODY_NESTING) || RESERVED.test(json);
}

const QUOTE = 0x22;
/** Square brackets and braces differ in this bit. */
const BRACE_BIT = 0x20;
const OPENS = 0x5b;
const CLOSES = 0x5d;

function isDeeperThan(json: string, levels: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = textEnd(json, at) - 1;
    else if ((code | BRACE_BIT) === (OPENS | BRACE_BIT)) {
      if (++depth > levels) return true;
    } else if ((code | BRACE_BIT) === (CLOSES | BRACE_BIT)) depth--;
  }
  return false;
}

/** Why a value is unsafe that may have so many levels; null where it is safe. */
function problemIn(value: unknown, levels: number): string | null {
  if (typeof value !== "object" || value === null || value instanceof UnreadMemory) return null;
  if (levels === 0) return TOO_DEEP;
  for (const [name, inner] of Object.entries(value)) {
    const problem = name === "__proto__" ? NAMED : problemIn(inner, levels - 1);
    if (problem !== null) return problem;
  }
  return null;
}

/** Replaces unsafe memories of a body. The list may be in `results`, whose siblings, such as relations, are not read. */
function dropUnsafeMemories(body: unknown, path: BodyPath): void {
  let holder = body;
  for (const name of path) holder = (holder as Readonly<Record<string, unknown>> | null | undefined)?.[name];
  const replace = (parts: Record<string, unknown> | unknown[], levels: number, except?: string) => {
    for (const [name, part] of Object.entries(parts)) {
      const problem = name === "__proto__" ? NAMED : problemIn(part, levels);
      if (problem === null || name === except) continue;
      if (Array.isArray(parts)) parts[Number(name)] = new UnreadMemory(problem);
      else delete parts[name];
    }
  };
  if (typeof holder !== "object" || holder === null) return;
  const levels = MAX_BODY_NESTING - path.length - 1;
  replace(holder as Record<string, unknown>, levels, "results");
  if ("results" in holder && Array.isArray(holder.results)) replace(holder.results as unknown[], levels - 1);
}
