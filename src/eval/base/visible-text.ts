/** Control, zero-width and direction-changing characters, which could make a report show something else than it says. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;
/** Joiners that emoji and several scripts need. */
const JOINERS = new Set(["\u200c", "\u200d"]);

/** Other people's text on one line, with invisible characters named by code point, `[U+202E]`. Line ends and tabs become spaces. */
export function visibleText(text: string): string {
  return text.replace(/[\r\n\t]+/g, " ").replace(UNSEEN, (found) => {
    if (JOINERS.has(found)) return found;
    return `[U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`;
  });
}
