/** One import, or one export from another module. */
export interface ModuleImport {
  readonly specifier: string;
  /** What stands before `from`, such as `{ a, type B }`; empty without it. */
  readonly names: string;
  /** Whether it is written `import type` or `export type`. */
  readonly isType: boolean;
}

const TOKENS =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`|(?<=[=(,:;!&|?{}[\n]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/g;

const IMPORT = /\b(?:import|export)\s+(type\s+)?(?:([\w$*{},\s]+?)\s*\bfrom\s*)?"(\d+)"|\bimport\s*\(\s*"(\d+)"/g;

/** The code of a module without its comments; every quoted text is replaced by its number in `texts`. */
export function codeOf(source: string): { readonly code: string; readonly texts: readonly string[] } {
  const texts: string[] = [];
  const code = source.replace(TOKENS, (token) => {
    if (token.startsWith("//") || token.startsWith("/*")) return " ";
    if (token.startsWith("/")) return '"regex"';
    texts.push(token.slice(1, -1));
    return `"${texts.length - 1}"`;
  });
  return { code, texts };
}

/** The comments of a module, in their order. */
export function commentsOf(source: string): readonly string[] {
  return (source.match(TOKENS) ?? []).filter((token) => /^\/[/*]/.test(token));
}

/** What a module imports, in TypeScript, in JavaScript or in declarations; what only looks like it in comments and texts aside. */
export function importsIn(source: string): readonly ModuleImport[] {
  const { code, texts } = codeOf(source);
  return [...code.matchAll(IMPORT)].map(([, type, names = "", from, dynamic]) => ({
    specifier: texts[Number(from ?? dynamic)] ?? "",
    names: names.trim(),
    isType: type !== undefined,
  }));
}
