/** A JSON object; its values are unchecked. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The value where it is a text, else an empty one. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Whether a value is an object, or a list. */
export function isRecord(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null;
}

/** Whether a value is an object, and no list. */
export function isObject(value: unknown): value is JsonObject {
  return isRecord(value) && !Array.isArray(value);
}

/** The value where it is an object, else an empty one. */
export function record(value: unknown): JsonObject {
  return isRecord(value) ? value : {};
}

/** The value where it is a list, else an empty one. */
export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

/** What a text of JSON says; undefined where it is none. The parser's own error would quote the text. */
export function parsedJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

const BACKSLASH = 0x5c;

/** The index after the closing quote of the text of JSON that starts at `from`; the end where it is not closed. */
export function textEnd(json: string, from: number): number {
  for (let at = json.indexOf('"', from + 1); at >= 0; at = json.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (json.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
  return json.length;
}

/** An item of a list, or a field of an object, in a JSON text. */
export interface JsonPart {
  /** The field's name, or the item's position. */
  readonly key: string | number;
  /** Where it begins: a field with its name. */
  readonly start: number;
  /** Where its value begins. */
  readonly from: number;
  readonly to: number;
}

/** The items of the list, or the fields of the object, that begins at `start`, as far as it is JSON; none where another value does. */
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

/** The text that a JSON text is; empty where it is none. */
export function quotedText(json: string): string {
  return text(parsedJson(json));
}

const BLANKS = /[\t\n\r ]*/y;
/** A number, or a word. */
const SCALAR = /[^\t\n\r ,:[\]{}"]*/y;

/** The index after white space from `at` on. */
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

/** The index after the value that begins at `from`; `from` itself where none does. */
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

/** How a text may stand in a message's JSON: as a part of a text, and of JSON in a text. */
export function formsInJson(text: string): readonly string[] {
  const escaped = (one: string) => JSON.stringify(one).slice(1, -1);
  const ascii = (one: string) =>
    one.replace(/[\u007f-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
  // Line breaks of a memory are stored as one kind.
  const whole = [...new Set([text, text.replaceAll("\n", "\r\n")])];
  return whole.flatMap((one) => {
    const once = escaped(one);
    return [...new Set([once, escaped(once), ascii(once), escaped(ascii(once))])];
  });
}
