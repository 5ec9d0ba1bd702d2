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
