import { type JsonPart, partsOf, pastBlanks, quotedText, textEnd } from "../../core/text/json.js";
import type { FieldIssue } from "../../service/base/call-types.js";
import { InvalidRequestError } from "../../service/base/errors.js";
import { UnreadMemory } from "../../service/fields/fields.js";

/*
 * Unsafe JSON: nested too deep, with a field that sets a prototype, or not UTF-8. It is rejected, except in a chat's memories, where only the
 * memory is dropped.
 */

/** Fields on the way to a part of a body; `*`: every item of a list. */
export type BodyPath = readonly string[];

/**
 * Parses a client's JSON. Replaces unsafe memories with {@link UnreadMemory}; throws {@link InvalidRequestError} for other unsafe parts and
 * a `SyntaxError` for text that is not JSON.
 *
 * @param memoriesAt path of a chat's memories; absent: there are none
 */
export function parseSafeJson(json: string, memoriesAt?: BodyPath): unknown {
  const issue = unsafeIn(json);
  if (issue === null) return JSON.parse(json);
  if (memoriesAt === undefined) throw new InvalidRequestError([issue]);
  const unread = unsafeMemories(json, memoriesAt);
  const rest = withNulls(json, unread);
  const left = unsafeIn(rest);
  if (left !== null) throw new InvalidRequestError([left]);
  const body: unknown = JSON.parse(rest);
  for (const { place, problem } of unread) putUnread(body, place, problem);
  return body;
}

const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** Decodes UTF-8. Throws a TypeError for other bytes: replacement characters would make two different texts equal. */
export function utf8Text(bytes: Uint8Array): string {
  return UTF_8.decode(bytes);
}

/**
 * Recursive code, V8's `JSON.stringify` included, overflows the stack on deep values; and V8 takes half a second to build a value of a million
 * levels.
 */
export const MAX_BODY_NESTING = 128;

/** Why JSON is unsafe to parse, with the field; null where it is safe. Does not check that it is JSON. O(length). */
export function unsafeIn(json: string, levels = MAX_BODY_NESTING): FieldIssue | null {
  return deepNesting(json, levels) ?? reservedName(json);
}

const QUOTE = 0x22;
/** Square brackets and braces differ in this bit. */
const BRACE_BIT = 0x20;
const OPENS = 0x5b;
const CLOSES = 0x5d;

function deepNesting(json: string, levels: number): FieldIssue | null {
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
      if (++depth > levels) return tooDeep(quotedText(json.slice(...name)));
    } else if ((code | BRACE_BIT) === (CLOSES | BRACE_BIT)) depth--;
  }
  return null;
}

function tooDeep(name: string): FieldIssue {
  const field = /^[\w.-]{1,64}$/.test(name) ? name : "body";
  return { field, message: `must not be nested more than ${MAX_BODY_NESTING} levels deep` };
}

/** The field name `__proto__` in JSON, in any escaping. Inside a string its quotes would be escaped. */
const RESERVED =
  /"(?:_|\\u005f){2}(?:p|\\u0070)(?:r|\\u0072)(?:o|\\u006f)(?:t|\\u0074)(?:o|\\u006f)(?:_|\\u005f){2}"[\t\n\r ]*:/i;

/** Assigning such a field sets a prototype, so it would be lost silently. */
function reservedName(json: string): FieldIssue | null {
  return RESERVED.test(json) ? { field: "__proto__", message: "must not be a field's name" } : null;
}

type PartBounds = Pick<JsonPart, "from" | "to">;

/** `place`: the keys on the way to it. */
interface UnsafeMemory extends PartBounds {
  readonly place: readonly (string | number)[];
  readonly problem: string;
}

const RESULTS = "results";

/** Unsafe memories of a body, in order. The list may be in `results`, whose siblings, such as relations, are not read. */
function unsafeMemories(json: string, path: BodyPath): readonly UnsafeMemory[] {
  const start = pastBlanks(json, 0);
  const items = [
    [...path, "*"],
    [...path, RESULTS, "*"],
  ];
  const beside = [...partsAt(json, path, start, [])].flatMap(({ from, place }) =>
    [...partsOf(json, from)]
      .filter(({ key }) => typeof key === "string" && key !== RESULTS)
      .map(({ key, from, to }) => ({ from, to, place: [...place, key] })),
  );
  return [...items.flatMap((steps) => [...partsAt(json, steps, start, [])]), ...beside]
    .sort((a, b) => a.from - b.from)
    .flatMap(({ from, to, place }) => {
      const issue = unsafeIn(json.slice(from, to), MAX_BODY_NESTING - place.length);
      if (issue === null) return [];
      const problem = issue.field === "__proto__" ? "must not have a field named __proto__" : issue.message;
      return [{ from, to, place, problem }];
    });
}

/** The text with null in place of these parts. */
function withNulls(json: string, parts: readonly PartBounds[]): string {
  const ends = [...parts.map(({ from }) => from), json.length];
  return ends.map((end, at) => json.slice(parts[at - 1]?.to ?? 0, end)).join("null");
}

function putUnread(body: unknown, place: readonly (string | number)[], problem: string): void {
  const list = place
    .slice(0, -1)
    .reduce<unknown>((value, key) => (value as Record<string | number, unknown>)?.[key], body);
  const at = Number(place.at(-1));
  // Of a repeated field, the last value counts.
  if (Array.isArray(list) && list[at] === null) list[at] = new UnreadMemory(problem);
}

/** The parts at a path in a value that begins at `start`. */
function* partsAt(
  json: string,
  [step, ...below]: BodyPath,
  start: number,
  before: readonly (string | number)[],
): Generator<PartBounds & Pick<UnsafeMemory, "place">> {
  for (const { key, from, to } of partsOf(json, start)) {
    if (step !== (typeof key === "number" ? "*" : key)) continue;
    const place = [...before, key];
    if (below.length === 0) yield { from, to, place };
    else yield* partsAt(json, below, from, place);
  }
}
