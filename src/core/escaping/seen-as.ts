const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}]/u;

/** The character at an offset of a text, one or two UTF-16 units. */
export function characterAt(text: string, at: number): string {
  return String.fromCodePoint(text.codePointAt(at) ?? 0);
}

/**
 * A character as a reader sees it who ignores invisible characters and takes full-width letters for letters: in NFKC; empty for control and
 * default-ignorable characters. White space is kept.
 */
export function seenAs(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x80) return (code < 0x20 && (code < 0x09 || code > 0x0d)) || code === 0x7f ? "" : character;
  if (code >= 0xff01 && code <= 0xff5e) return String.fromCharCode(code - 0xfee0);
  if (isItself(code)) return character;
  if (code >= 0x200b && code <= 0x200f) return "";
  return code !== 0x85 && INVISIBLE.test(character) ? "" : character.normalize("NFKC");
}

/** Fast path: letters of Latin, Cyrillic, Japanese, Chinese and Korean that NFKC does not change. */
function isItself(code: number): boolean {
  return (
    (code >= 0x4e00 && code <= 0x9fff) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0x3041 && code <= 0x3096) ||
    (code >= 0x30a1 && code <= 0x30fa) ||
    (code >= 0x0400 && code <= 0x0482) ||
    (code >= 0x00c0 && code <= 0x0131)
  );
}
