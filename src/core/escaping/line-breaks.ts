/** Line breaks for any reader: Python's `str.splitlines` knows more of them than JavaScript. A regular expression's source. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: separators of files, groups and records are line breaks to Python
export const BREAK = /[\n\r\u000b\u000c\u001c-\u001e\u0085\u2028\u2029]/.source;

/** What a reader does not see at the start of a line, or in a number: white space, control and default-ignorable characters. */
const UNSEEN = String.raw`(?:(?!${BREAK})[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}])`;

/*
 * A block's line begins with its number and a space. Where a further line of a text begins so, in digits of any script, a backslash is
 * inserted before the number; existing ones do not affect whether a line matches, so the inverse removes one.
 */
const NUMBER = String.raw`(\\*\p{N}(?:\p{N}|${UNSEEN})*(?=\s))`;
const NUMBERED = `(${BREAK}${UNSEEN}*)${NUMBER}`;
const NUMBERED_LINES = new RegExp(NUMBERED, "gu");
const ESCAPED_LINES = new RegExp(String.raw`(${BREAK}${UNSEEN}*)\\${NUMBER}`, "gu");

/** Escapes the numbers at the start of further lines. Linear time. */
export function escapeNumberedLines(text: string): string {
  return text.replace(NUMBERED_LINES, "$1\\$2");
}

/** The inverse of {@link escapeNumberedLines}. */
export function unescapeNumberedLines(text: string): string {
  return text.replace(ESCAPED_LINES, "$1$2");
}
