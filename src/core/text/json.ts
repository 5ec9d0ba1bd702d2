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
