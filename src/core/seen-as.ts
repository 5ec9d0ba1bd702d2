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
  return code !== 0x85 && INVISIBLE.test(character) ? "" : character.normalize("NFKC");
}
