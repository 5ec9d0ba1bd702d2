const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}]/u;

/** The character, of one or two units, that begins at a place in a text. */
export function characterAt(text: string, at: number): string {
  return String.fromCodePoint(text.codePointAt(at) ?? 0);
}

/**
 * A character as it is seen by who does not see what is invisible, and to whom full-width letters are letters: in Unicode's form NFKC; empty
 * for control characters and default-ignorable ones. White space stays.
 */
export function seenAs(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x80) return (code < 0x20 && (code < 0x09 || code > 0x0d)) || code === 0x7f ? "" : character;
  if (code >= 0xff01 && code <= 0xff5e) return String.fromCharCode(code - 0xfee0);
  if (isItself(code)) return character;
  if (code >= 0x200b && code <= 0x200f) return "";
  return code !== 0x85 && INVISIBLE.test(character) ? "" : character.normalize("NFKC");
}

/** Whether it is a letter of Latin, Cyrillic, Japanese, Chinese or Korean that NFKC leaves as it is, which is quickly told. */
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
