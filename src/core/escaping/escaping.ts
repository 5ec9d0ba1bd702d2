/* escaping: memory text is untrusted. Enters: a memory's text. Leaves: the text with anything like structure escaped, and the inverse. */

const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}]/u;

function characterAt(text: string, at: number): string {
  return String.fromCodePoint(text.codePointAt(at) ?? 0);
}

/** A character as a reader sees it: NFKC, without control and default-ignorable characters. White space is kept. */
function seenAs(character: string): string {
  const code = character.charCodeAt(0);
  if (code >= 0x20 && code < 0x7f) return character;
  const isSpace = (code >= 0x09 && code <= 0x0d) || code === 0x85;
  return !isSpace && INVISIBLE.test(character) ? "" : character.normalize("NFKC");
}

/** Line breaks for any reader: Python's `str.splitlines` knows more than JavaScript. Source of a regular expression. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: separators of files, groups and records are line breaks to Python
const BREAK = /[\n\r\u000b\u000c\u001c-\u001e\u0085\u2028\u2029]/.source;

/** What a reader does not see at the start of a line or in a number. */
const UNSEEN = String.raw`(?:(?!${BREAK})[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}])`;

/* A block's line begins with a number or hyphen, and a space. A backslash is inserted before further lines that do, in digits of any script. */
const NUMBER = String.raw`\p{N}(?:\p{N}|${UNSEEN})*(?=\s)`;
const BULLET = `[-－﹣](?=${UNSEEN}|${BREAK}|$)`;
const START = String.raw`(\\*(?:${NUMBER}|${BULLET}))`;
const LIKE_BLOCKS = new RegExp(`(${BREAK}${UNSEEN}*)${START}`, "gu");
const ESCAPED_LINES = new RegExp(String.raw`(${BREAK}${UNSEEN}*)\\${START}`, "gu");

function escapeLines(text: string): string {
  return text.replace(LIKE_BLOCKS, "$1\\$2");
}

function unescapeLines(text: string): string {
  return text.replace(ESCAPED_LINES, "$1$2");
}

/* What a tokenizer could parse as special tokens, or a model as labels and tags. No list is complete: shapes decide (docs/escaping.md). */

const OPENERS = "<＜﹤\\[［﹇\\]］﹈>＞﹥/／";
const OPENER = new RegExp(`[${OPENERS}]`);

/** Maximum characters read from an opener on; special tokens are shorter. */
const LONGEST = 96;
/** Further digits make no difference. */
const LONGEST_NUMBER = 8;

/** DeepSeek and Seed-Coder write a space as U+2581. */
const WORD = String.raw`[\p{L}\p{M}\p{N}_▁]`;
const NAME = `${WORD}+(?:[:=@+-]${WORD}+)*`;
const anyOf = (shapes: readonly string[], flags = "") => new RegExp(`^(?:${shapes.join("|")})`, `u${flags}`);

/** The shapes after each opener, case-sensitive and case-insensitive. Plain names in angle brackets: see {@link isMarkerName}. */
const SHAPES: Readonly<Record<string, readonly RegExp[]>> = {
  "<": [
    anyOf([
      String.raw`<\/?\|`,
      String.raw`<\/?${WORD}+\|>`,
      String.raw`<\[\p{L}[^<>[\]]*\]>`,
      String.raw`<<\/?${WORD}{2,}>>`,
      String.raw`< ?\/? ?[Mm][Ee][Mm][Oo][Rr][Ii][Ee][Ss]`,
    ]),
  ],
  "[": [
    anyOf([
      String.raw`\[ ?\p{N}+ ?\]`,
      String.raw`\[\|`,
      String.raw`\[@?\/?[a-z]?(?=[^\]]*[A-Z][^\]]*[A-Z])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*@?\]`,
      String.raw`\[\/?[A-Za-z]\w*_[0-9]+\]`,
    ]),
    anyOf(
      [
        String.raw`\[\/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID)\]`,
        String.raw`\[(?:[gs]MASK|unused\d+|multimodal|toxicity=\d+)\]`,
        String.raw`\[[a-z]{1,8}~\[`,
      ],
      "i",
    ),
  ],
  "]": [anyOf([String.raw`\]~!?[a-z]{1,8}[[\]]`, String.raw`\]![a-z]{1,8}~\[`, String.raw`\]<\]`], "i")],
  ">": [anyOf([">>[A-Z][A-Z0-9_]+<<"])],
  "/": [anyOf([String.raw`\/(?:(?:no[_-]?)?think|system_override)`], "i")],
};
const IN_NAMES = /^[\p{L}\p{N}_]+$/u;
const DIGIT = /^\p{N}/u;
const NAMED = anyOf([String.raw`<\/?(${NAME})>`]);
/** By the last character read: whether no further one can make another shape. */
const IS_ALL: Readonly<Record<string, (read: string, last: string) => boolean>> = {
  "<": (read, last) => {
    if (last === ">") return read.charAt(1) !== "<" || read.endsWith(">>");
    if (last === "<" || last === "[") return read.length > 2;
    return last === " " ? read.length > 4 : last === "|" && read.length === 2;
  },
  "[": (read, last) => last === "[" || last === "]" || (last === "|" && read.length === 2),
  "]": (read, last) => read.length > 2 && (last === "[" || last === "]"),
  ">": (read, last) => (last === ">" ? read.length > 2 : read.endsWith("<<")),
  "/": (_read, last) => " /<>[]".includes(last),
};
/** HTML elements and types of programming languages, which are no template's tokens. */
const SPARED = new Set(
  [
    "abbr acronym address applet area article aside base bdi bdo big blink blockquote body br button canvas caption center cite code col",
    "colgroup data datalist dd del details dfn dialog dir div dl dt em embed fieldset figcaption figure font footer form frame frameset",
    "h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe input ins kbd label legend li link main map mark marquee menu meta meter nav nobr",
    "noframes noscript ol optgroup option output param picture pre progress rp rt ruby samp script section select slot small source",
    "span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr track tt ul var wbr",
    "any array bool boolean byte char double f32 f64 float i8 i16 i32 i64 int integer isize long never null number short str string u8 u16",
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t",
    "u32 u64 uint undefined unknown usize vector void",
  ].flatMap((line) => line.split(" ")),
);
/** Tokens that are escaped in any letter case. */
const KNOWN = new Set(["s", "bos", "eos", "sop", "eop", "think", "tools", "dblock"]);

/** Whether a name in angle brackets may be a special token. Numbers, single letters, {@link SPARED} and types (`MyButton`) are not. */
function isMarkerName(name: string): boolean {
  const small = name.toLowerCase();
  if (KNOWN.has(small)) return true;
  if (/^(?:\p{N}+|\p{L})$/u.test(name) || SPARED.has(name)) return false;
  return !/^(?=\w*[a-z])(?=\w*[A-Z])[A-Za-z][A-Za-z0-9]*$/.test(name);
}

/** Anything but printable ASCII: possibly invisible or full-width. */
const OTHER = "[^!-~]";
/** A superset of what {@link isMarkerAt} accepts, judged by the next characters, which excludes most. */
const CANDIDATES = new RegExp(
  [
    String.raw`<(?=\\*(?:${OTHER}|[\w|/[]|<\\*(?:${OTHER}|[\w/])))`,
    String.raw`\[(?=\\*(?:${OTHER}|[\w|/@]))`,
    String.raw`\](?=\\*(?:${OTHER}|[~!]|<\\*(?:${OTHER}|\])))`,
    String.raw`>(?=\\*(?:${OTHER}|>\\*(?:${OTHER}|[A-Z])))`,
    String.raw`\/(?=\\*(?:${OTHER}|[NTSnts]))`,
    "[＜﹤［﹇］﹈＞﹥／]",
  ].join("|"),
  "g",
);
const OPENER_CLASS = `[${OPENERS}]`;

/** Whether a marker starts here. Backslashes after its first character make no difference. */
function isMarkerAt(text: string, at: number): boolean {
  const read = skeletonAt(text, at);
  const shapes = SHAPES[read.charAt(0)];
  if (read.length < 2 || shapes === undefined || isNested(read)) return false;
  if (shapes.some((one) => one.test(read))) return true;
  const named = NAMED.exec(read);
  return named !== null && isMarkerName(named[1] ?? "");
}

/** Whether another opener follows too early for a section's tag, as in texts full of openers. */
function isNested(read: string): boolean {
  const last = read.charAt(read.length - 1);
  if (read.length > "<memories".length || (last !== "<" && last !== "[")) return false;
  const opener = read.charAt(0);
  return opener === "<" || (opener === "[" && read.charAt(read.length - 2) !== "~");
}

/** The normalised text from an opener on. Without backslashes after openers, so that an escaped text reads like the original. */
function skeletonAt(text: string, at: number): string {
  const opener = seenAs(text.charAt(at));
  const isAll = IS_ALL[opener] ?? (() => true);
  let read = opener;
  let digits = 0;
  for (let i = behindBackslashes(text, at + 1); i < text.length && read.length < LONGEST; ) {
    const own = characterAt(text, i);
    const seen = seenAs(own);
    i += own.length;
    if (seen === "") continue;
    digits = DIGIT.test(seen) ? digits + 1 : 0;
    if (digits > LONGEST_NUMBER) continue;
    if (IN_NAMES.test(seen)) read += seen;
    else {
      const one = /^\s/.test(seen) ? " " : seen;
      if (one === " " && read.endsWith(" ")) continue;
      read += one;
      if (isAll(read, one)) break;
      if (OPENER.test(own)) i = behindBackslashes(text, i);
    }
  }
  return read;
}

function behindBackslashes(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) === 0x5c) at++;
  return at;
}

/* A backslash goes after a marker's first character: `[7]` becomes `[\7]`, `[\7]` becomes `[\\7]`. The inverse removes one. */

/** Escapes a canonical text for a section. Linear time. */
export function escapeText(text: string): string {
  if (!MAY_CHANGE.test(text)) return text;
  const escaped = text.replace(CANDIDATES, (opener, at: number) => (isMarkerAt(text, at) ? `${opener}\\` : opener));
  return escapeLines(escaped).replace(LINE_BREAKS, "$&  ");
}

export function unescapeText(written: string): string {
  const escaped = unescapeLines(written.replace(INDENTED, "$1"));
  return escaped.replace(ESCAPED_OPENERS, (both, opener: string, at: number) =>
    isMarkerAt(escaped, at) ? opener : both,
  );
}

const ESCAPED_OPENERS = new RegExp(String.raw`(${OPENER_CLASS})\\`, "g");

const LINE_BREAKS = new RegExp(BREAK, "g");
/** Fast path: only a text that matches can need escaping. */
const MAY_CHANGE = new RegExp(`${OPENER_CLASS}|${BREAK}`);
const INDENTED = new RegExp(`(${BREAK})  `, "g");
