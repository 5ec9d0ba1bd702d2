const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** Reads text. Throws a TypeError for bytes that are no UTF-8, which would else be replaced: two different texts would become one. */
export function utf8Text(bytes: ArrayBuffer | Uint8Array): string {
  return UTF_8.decode(bytes);
}
