/** Controls, marks without width, and those that turn the direction of text: what could make a report show other than it says. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;
/** Joiners that emoji and several scripts need. */
const JOINERS = new Set(["\u200c", "\u200d"]);

/** Text of others on one line, every character that cannot be seen named by its code point: `[U+202E]`. Line ends and tabs become spaces. */
export function visibleText(text: string): string {
  return text.replace(/[\r\n\t]+/g, " ").replace(UNSEEN, (found) => {
    if (JOINERS.has(found)) return found;
    return `[U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`;
  });
}
