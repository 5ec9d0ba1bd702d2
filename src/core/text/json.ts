export type JsonObject = Readonly<Record<string, unknown>>;

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function isRecord(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null;
}

export function isObject(value: unknown): value is JsonObject {
  return isRecord(value) && !Array.isArray(value);
}

export function record(value: unknown): JsonObject {
  return isRecord(value) ? value : {};
}

export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

/** Equality of JSON values, apart from key order; undefined fields are absent. */
export function isSameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item, at) => isSameJson(item, b[at]));
  if (!isObject(a) || !isObject(b)) return false;
  for (const name in a) if (!isSameJson(a[name], b[name])) return false;
  // Fields of both are not compared again: that would double the time with each level.
  for (const name in b) if (!Object.hasOwn(a, name) && b[name] !== undefined) return false;
  return true;
}

/** Undefined for invalid JSON: the parser's own error would quote the text. */
export function parsedJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

const BACKSLASH = 0x5c;

/** The index after the closing quote of the string at `from`, or the text's end. */
export function textEnd(json: string, from: number): number {
  for (let at = json.indexOf('"', from + 1); at >= 0; at = json.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (json.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
  return json.length;
}

/** An item or a field in a JSON text. */
export interface JsonPart {
  readonly key: string | number;
  /** A field starts at its name, its value at `from`. */
  readonly start: number;
  readonly from: number;
  readonly to: number;
}

/** The items or fields of the value at `start`, as far as it is valid JSON. */
export function* partsOf(json: string, start: number): Generator<JsonPart> {
  const isObject = json[start] === "{";
  if (!isObject && json[start] !== "[") return;
  let at = pastBlanks(json, start + 1);
  for (let count = 0; at < json.length && json[at] !== "]" && json[at] !== "}"; count++) {
    const begins = at;
    let key: string | number = count;
    if (isObject) {
      const end = json[at] === '"' ? textEnd(json, at) : at;
      key = quotedText(json.slice(at, end));
      at = pastBlanks(json, end);
      if (json[at] !== ":") return;
      at = pastBlanks(json, at + 1);
    }
    const to = valueEnd(json, at);
    if (to === at) return;
    yield { key, start: begins, from: at, to };
    at = pastBlanks(json, to);
    if (json[at] === ",") at = pastBlanks(json, at + 1);
  }
}

/** Empty if the JSON is no string. */
function quotedText(json: string): string {
  // Most names have no escapes.
  return json.includes("\\") || json[0] !== '"' ? text(parsedJson(json)) : json.slice(1, -1);
}

const BLANKS = /[\t\n\r ]*/y;
const SCALAR = /[^\t\n\r ,:[\]{}"]*/y;

export function pastBlanks(json: string, at: number): number {
  return endOf(BLANKS, json, at);
}

function endOf(pattern: RegExp, json: string, at: number): number {
  pattern.lastIndex = at;
  pattern.test(json);
  return pattern.lastIndex;
}

const QUOTE = 0x22;
/** Square brackets and braces differ in this bit. */
const BRACE_BIT = 0x20;
const OPENS = 0x7b;
const CLOSES = 0x7d;

/** The index after the value at `from`; `from` itself for none. */
export function valueEnd(json: string, from: number): number {
  const first = json.charCodeAt(from);
  if (first === QUOTE) return textEnd(json, from);
  if ((first | BRACE_BIT) !== OPENS) return endOf(SCALAR, json, from);
  let depth = 0;
  for (let at = from; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = textEnd(json, at) - 1;
    else if ((code | BRACE_BIT) === OPENS) depth++;
    else if ((code | BRACE_BIT) === CLOSES && --depth === 0) return at + 1;
  }
  return json.length;
}

/** Deeper JSON stays unmodified, because the code is recursive. */
const MAX_LEVELS = 64;
/** Decimals with more digits can differ as text and be equal as doubles. */
const EXACT_DIGITS = 15;

/** JSON with its fields sorted, and its strings and numbers spelled one way. Parses no number that would be rounded. Invalid JSON stays unmodified. */
export function canonicalJsonText(json: string): string {
  if (parsedJson(json) === undefined) return json;
  return canonicalValue(json, pastBlanks(json, 0), MAX_LEVELS) ?? json;
}

/** Null if it is nested too deep. */
function canonicalValue(json: string, from: number, levels: number): string | null {
  const first = json[from];
  const literal = () => json.slice(from, valueEnd(json, from));
  if (first === '"') return JSON.stringify(quotedText(literal()));
  if (first !== "{" && first !== "[") return canonicalLiteral(literal());
  if (levels === 0) return null;
  const fields: { readonly key: string; readonly value: string }[] = [];
  for (const part of partsOf(json, from)) {
    const value = canonicalValue(json, part.from, levels - 1);
    if (value === null) return null;
    fields.push({ key: String(part.key), value });
  }
  if (first === "[") return `[${fields.map(({ value }) => value).join()}]`;
  // A repeated key keeps its place among its equals.
  fields.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return `{${fields.map(({ key, value }) => `${JSON.stringify(key)}:${value}`).join()}}`;
}

function canonicalLiteral(literal: string): string {
  if (!/^[-\d]/.test(literal)) return literal;
  const significant = literal
    .replace(/[eE].*$/, "")
    .replace(/[-.]/g, "")
    .replace(/^0+/, "");
  if (significant === "") return "0";
  const size = Math.abs(Number(literal));
  return significant.length > EXACT_DIGITS || size < 1e-300 || size > 1e300 ? literal : String(Number(literal));
}

/** A text within a message's JSON: in a string, and in JSON inside a string. */
export function formsInJson(text: string): readonly string[] {
  const escaped = (one: string) => JSON.stringify(one).slice(1, -1);
  const ascii = (one: string) =>
    one.replace(/[\u007f-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
  // A memory's line breaks are stored as `\n`.
  const whole = [...new Set([text, text.replaceAll("\n", "\r\n")])];
  return whole.flatMap((one) => {
    const once = escaped(one);
    return [...new Set([once, escaped(once), ascii(once), escaped(ascii(once))])];
  });
}
