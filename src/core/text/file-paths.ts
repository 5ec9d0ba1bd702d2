/** What a path may go on with outside of quotes: also a space, where a slash follows before the next one. */
const REST = String.raw`(?:[^\s'"\`<>|,;()]| (?=[^\s:'"\`]+[\\/]))*`;
/** Not inside of a word, an address (`http://host/path`) or another path. */
const APART = String.raw`(?<![\w.:/\\\]-])`;
const SHAPES: readonly string[] = [
  // In quotes a path may have spaces.
  String.raw`(?<=(['"\`]))(?:file:/|[A-Za-z]:[\\/]|\\\\|\.{0,2}/)(?:(?!\1).)*(?=\1)`,
  `file:/${REST}`,
  String.raw`${APART}[A-Za-z]:[\\/]${REST}`,
  String.raw`${APART}\\\\${REST}`,
  String.raw`${APART}(?:\.{1,2}|~)?/(?=[^\s/])${REST}`,
  String.raw`${APART}node_modules[\\/]${REST}`,
];
const PATHS = new RegExp(SHAPES.join("|"), "g");

/**
 * A text with "a file" in place of every path of a file system in it: absolute ones of POSIX and Windows, `file:` URLs, relative ones that
 * begin with a dot. Errors of Node.js and SQLite name files, which are nobody's business who only sent a request. Addresses
 * of services stay.
 */
export function withoutFilePaths(text: string): string {
  return text.replace(PATHS, "a file");
}
