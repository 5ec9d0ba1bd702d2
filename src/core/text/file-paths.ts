/** A space is part of an unquoted path only if another slash follows before the next space. */
const REST = String.raw`(?:[^\s'"\`<>|,;()]| (?=[^\s:'"\`]+[\\/]))*`;
/** Not inside a word, a URL (`http://host/path`) or another path. */
const APART = String.raw`(?<![\w.:/\\\]-])`;
const SHAPES: readonly string[] = [
  // A quoted path may contain spaces.
  String.raw`(?<=(['"\`]))(?:file:/|[A-Za-z]:[\\/]|\\\\|\.{0,2}/)(?:(?!\1).)*(?=\1)`,
  `file:/${REST}`,
  String.raw`${APART}[A-Za-z]:[\\/]${REST}`,
  String.raw`${APART}\\\\${REST}`,
  String.raw`${APART}(?:\.{1,2}|~)?/(?=[^\s/])${REST}`,
  String.raw`${APART}node_modules[\\/]${REST}`,
];
const PATHS = new RegExp(SHAPES.join("|"), "g");

/** Replaces file system paths and `file:` URLs by "a file": an API client must not see those in errors of Node.js and SQLite. */
export function withoutFilePaths(text: string): string {
  return text.replace(PATHS, "a file");
}
