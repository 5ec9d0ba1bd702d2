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

/*
 * Numbers of JSON that JavaScript would change: integers beyond 2^53, as ids of 64 bits, bounds of schemas and seeds are. They are carried as
 * texts with a mark, and are numbers again wherever JSON leaves: a client's prompt is sent as it is said.
 */

/** Of a private-use character, which JSON does not escape: in JSON within JSON it is the same. */
const MARK = "\uf8ffmemprefix:number:";
const MARKED = new RegExp(`(\\\\*)"${MARK}(-?\\d+)\\1"`, "g");
const FORGED = /\uf8ff+(?=memprefix:number:)/g;
/** JSON may write any character so. */
const ESCAPED_ASCII = /\\u00[2-7]/;
const ALONE = new RegExp(`^${MARK}(-?\\d+)$`);
/** Digits of the least of them. */
const LEAST_DIGITS = 16;
const NEXT = /"|-?\d[\d.eE+-]*/g;

/**
 * A sender's JSON in which no text has the mark: it would be a number where a text has to be, and a tool's result could end a chat so. Such a
 * text loses the mark's first character, which is not shown, however often it is there. The same where it has none.
 */
export function withoutForgedNumbers(json: string): string {
  if (!mayForge(json)) return json;
  let written = "";
  let from = 0;
  for (let at = json.indexOf('"'), end = 0; at >= 0; at = json.indexOf('"', end)) {
    end = textEnd(json, at);
    const literal = json.slice(at, end);
    const said = mayForge(literal) ? parsedJson(literal) : null;
    if (typeof said !== "string" || !said.includes(MARK)) continue;
    written += json.slice(from, at) + JSON.stringify(said.replace(FORGED, ""));
    from = end;
  }
  return written + json.slice(from);
}

function mayForge(json: string): boolean {
  return json.includes("number:") || ESCAPED_ASCII.test(json);
}

/** JSON with such numbers as marked texts, and no other text with the mark; the same where it has none. */
export function withExactNumbers(sent: string): string {
  const json = withoutForgedNumbers(sent);
  if (!mayHold(json)) return json;
  let written = "";
  let from = 0;
  NEXT.lastIndex = 0;
  for (let found = NEXT.exec(json); found !== null; found = NEXT.exec(json)) {
    const [literal] = found;
    if (literal === '"') NEXT.lastIndex = textEnd(json, found.index);
    else if (isChanged(literal)) {
      written += `${json.slice(from, found.index)}"${MARK}${literal}"`;
      from = NEXT.lastIndex;
    }
  }
  return written + json.slice(from);
}

/** JSON whose marked texts are numbers again, also in JSON within its texts. */
export function withPlainNumbers(json: string): string {
  return json.includes(MARK) ? json.replace(MARKED, "$2") : json;
}

/** A value whose marked texts are numbers, as JavaScript has them. Changes lists and objects in place. */
export function roundedNumbers(value: unknown): unknown {
  if (typeof value === "string") return value.startsWith(MARK) ? Number(ALONE.exec(value)?.[1] ?? value) : value;
  if (!isRecord(value)) return value;
  const fields = value as Record<string, unknown>;
  for (const [name, inner] of Object.entries(fields)) {
    const rounded = roundedNumbers(inner);
    if (rounded !== inner) fields[name] = rounded;
  }
  return value;
}

/** Whether there are so many digits in a row: of every such row one is looked at. A chat of 100 kB takes 40 µs, with an expression 80. */
function mayHold(json: string): boolean {
  for (let at = LEAST_DIGITS - 1; at < json.length; at += LEAST_DIGITS) {
    if (!isDigit(json.charCodeAt(at))) continue;
    let [from, to] = [at, at];
    while (isDigit(json.charCodeAt(from - 1))) from--;
    while (isDigit(json.charCodeAt(to + 1))) to++;
    if (to - from + 1 >= LEAST_DIGITS) return true;
  }
  return false;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function isChanged(literal: string): boolean {
  return /^-?\d+$/.test(literal) && !Number.isSafeInteger(Number(literal));
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
