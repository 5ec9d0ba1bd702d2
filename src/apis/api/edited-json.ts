import {
  isObject,
  isSameJson,
  type JsonObject,
  type JsonPart,
  partsOf,
  pastBlanks,
  valueEnd,
} from "../../core/text/json.js";

interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/**
 * Changes a JSON text from one value to another with as few changed bytes as possible: what both values share keeps its numbers, escapes, key
 * order and white space. O(length).
 *
 * @example editedJson('{"n": 1.0, "t": "a"}', { n: 1, t: "a" }, { n: 1, t: "b a" }) === '{"n": 1.0, "t": "b a"}'
 */
export function editedJson(json: string, value: unknown, next: unknown): string {
  const edits: Edit[] = [];
  collect(json, pastBlanks(json, 0), value, next, edits);
  if (edits.length === 0) return json;
  edits.sort((a, b) => a.from - b.from || a.to - b.to);
  // Sums of strings are copied once, when they are sent; joined ones once more.
  let edited = "";
  let end = 0;
  for (const { from, to, text } of edits) {
    edited += json.slice(end, from) + text;
    end = to;
  }
  return edited + json.slice(end);
}

/** Names that a JSON text's top-level object has more than once. Parsers differ in which one counts. */
export function repeatedNames(json: string): ReadonlySet<string | number> {
  const seen = new Set<string | number>();
  const repeated = new Set<string | number>();
  for (const { key } of partsOf(json, pastBlanks(json, 0))) {
    if (seen.has(key)) repeated.add(key);
    seen.add(key);
  }
  return repeated;
}

/** The text of a top-level field's value, the last one of that name; null where there is none. */
export function valueText(json: string, name: string): string | null {
  const part = [...partsOf(json, pastBlanks(json, 0))].findLast(({ key }) => key === name);
  return part === undefined ? null : json.slice(part.from, part.to);
}

/** The texts of the items of a top-level field's list; empty where it is none. */
export function itemTexts(json: string, name: string): readonly string[] {
  return itemParts(json, name).map(({ from, to }) => json.slice(from, to));
}

/** Replaces the items of a top-level field's list, and keeps what is between them. */
export function withItems(json: string, name: string, items: readonly string[]): string {
  const parts = itemParts(json, name);
  if (parts.length !== items.length) return json;
  const between = [...parts, { from: json.length }].map(({ from }, at) => json.slice(parts[at - 1]?.to ?? 0, from));
  return between.map((text, at) => text + (items[at] ?? "")).join("");
}

function itemParts(json: string, name: string): readonly JsonPart[] {
  const part = [...partsOf(json, pastBlanks(json, 0))].findLast(({ key }) => key === name);
  return part === undefined || json[part.from] !== "[" ? [] : [...partsOf(json, part.from)];
}

function collect(json: string, from: number, value: unknown, next: unknown, edits: Edit[]): void {
  if (isSameJson(value, next)) return;
  if (Array.isArray(value) && Array.isArray(next)) collectItems(json, from, value, next, edits);
  else if (isObject(value) && isObject(next)) collectFields(json, from, value, next, edits);
  else {
    const to = valueEnd(json, from);
    const own = typeof value === "string" ? { value, literal: json.slice(from, to) } : null;
    edits.push({ from, to, text: written(next, own) });
  }
}

function collectFields(json: string, from: number, value: JsonObject, next: JsonObject, edits: Edit[]): void {
  const parts = [...partsOf(json, from)];
  const last = new Map(parts.map((part) => [part.key, part]));
  // Of a repeated field that changes, only the last one is kept: an engine may read the first.
  const isKept = (part: JsonPart) =>
    next[part.key] !== undefined && (last.get(part.key) === part || isSameJson(value[part.key], next[part.key]));
  const added = Object.entries(next)
    .filter(([name, field]) => field !== undefined && !last.has(name))
    .map(([name, field]) => `${JSON.stringify(name)}:${JSON.stringify(field)}`);
  removeMissing(parts, isKept, edits);
  insertLast(from, parts, isKept, added, edits);
  for (const part of last.values()) {
    if (isKept(part)) collect(json, part.from, value[part.key], next[part.key], edits);
  }
}

function collectItems(
  json: string,
  from: number,
  value: readonly unknown[],
  next: readonly unknown[],
  edits: Edit[],
): void {
  const parts = [...partsOf(json, from)];
  const origins = originsOf(value, next);
  const kept = new Set(origins.map((at) => (at === null ? undefined : parts[at])));
  const isKept = (part: JsonPart) => kept.has(part);
  removeMissing(parts, isKept, edits);
  let added: string[] = [];
  for (const [at, item] of next.entries()) {
    const origin = origins[at] ?? null;
    const part = origin === null ? undefined : parts[origin];
    if (origin === null || part === undefined) {
      added.push(JSON.stringify(item));
      continue;
    }
    if (added.length > 0) edits.push({ from: part.start, to: part.start, text: `${added.join(",")},` });
    added = [];
    collect(json, part.from, value[origin], item, edits);
  }
  insertLast(from, parts, isKept, added, edits);
}

/** Removes each part with the comma before it; parts before the first kept one, with the comma after them. */
function removeMissing(parts: readonly JsonPart[], isKept: (part: JsonPart) => boolean, edits: Edit[]): void {
  const first = parts.findIndex(isKept);
  for (const [at, part] of parts.entries()) {
    if (isKept(part)) continue;
    const isAfterKept = first >= 0 && at > first;
    const start = isAfterKept ? (parts[at - 1]?.to ?? part.start) : part.start;
    edits.push({ from: start, to: isAfterKept ? part.to : (parts[at + 1]?.start ?? part.to), text: "" });
  }
}

function insertLast(
  from: number,
  parts: readonly JsonPart[],
  isKept: (part: JsonPart) => boolean,
  added: readonly string[],
  edits: Edit[],
): void {
  if (added.length === 0) return;
  const last = parts.findLast(isKept);
  const at = last?.to ?? from + 1;
  edits.push({ from: at, to: at, text: `${last === undefined ? "" : ","}${added.join(",")}` });
}

/** The index of the item that each new item was made from, in order; null: none. */
function originsOf(value: readonly unknown[], next: readonly unknown[]): readonly (number | null)[] {
  let from = 0;
  return next.map((item) => {
    for (let at = from; at < value.length; at++) {
      if (!isMadeOf(value[at], item)) continue;
      from = at + 1;
      return at;
    }
    return null;
  });
}

/** Fields that may change when a message, an item or a block is composed. */
const CHANGING: ReadonlySet<string> = new Set([
  ...["content", "text", "output", "input"],
  ...["cache_control", "prompt_cache_breakpoint"],
]);

function isMadeOf(own: unknown, made: unknown): boolean {
  if (!isObject(own) || !isObject(made)) return isSameJson(own, made);
  for (const name in own) if (!isFieldKept(own, made, name)) return false;
  for (const name in made) if (!Object.hasOwn(own, name) && !isFieldKept(own, made, name)) return false;
  return true;
}

function isFieldKept(own: JsonObject, made: JsonObject, name: string): boolean {
  return CHANGING.has(name) ? holds(made[name], own[name]) : isSameJson(own[name], made[name]);
}

/** Whether a text or a list still has what the client's had. */
function holds(made: unknown, own: unknown): boolean {
  if (own === undefined || isSameJson(own, made)) return true;
  if (typeof own === "string") {
    if (typeof made === "string") return own !== "" && made.includes(own);
    return Array.isArray(made) && made.some((part: unknown) => isObject(part) && holds(part["text"], own));
  }
  if (!Array.isArray(own) || !Array.isArray(made)) return !Array.isArray(own);
  return made.some((part) => own.some((given) => isMadeOf(given, part)));
}

/** JSON of a value, in which the client's own text keeps its spelling. */
function written(next: unknown, own: { readonly value: string; readonly literal: string } | null): string {
  if (own === null || own.value === "") return JSON.stringify(next);
  if (typeof next === "string") {
    const at = next.lastIndexOf(own.value);
    if (at < 0) return JSON.stringify(next);
    const escaped = (text: string) => JSON.stringify(text).slice(1, -1);
    return `"${escaped(next.slice(0, at))}${own.literal.slice(1, -1)}${escaped(next.slice(at + own.value.length))}"`;
  }
  if (Array.isArray(next)) return `[${next.map((item) => written(item, own)).join(",")}]`;
  if (!isObject(next)) return JSON.stringify(next);
  const fields = Object.entries(next).filter(([, field]) => field !== undefined);
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${written(field, own)}`).join(",")}}`;
}
