import { characterAt, seenAs } from "./seen-as.js";

/*
 * Which places of a text a reader could take for structure: an engine whose tokenizer knows special tokens, which many look for wherever
 * they stand, or a model that reads a section's labels and tags. A list of tokens is never whole, so places are told by the shape that the
 * tokens of public chat templates have (test/core/escaping/template-tokens.ts). `docs/escaping.md` says which shapes, and what was spared.
 */

/** Every character that one of the shapes begins with, full-width and small forms included. */
const OPENERS = "<＜﹤\\[［﹇\\]］﹈>＞﹥/／";
const OPENER = new RegExp(`[${OPENERS}]`);

/** Characters that are read from an opener on; special tokens are shorter. */
const LONGEST = 96;
/** Digits of one number that are read; the others change nothing. */
const LONGEST_NUMBER = 8;

/** Letters, marks and digits of any script, as they stand in a name; DeepSeek and Seed-Coder write a space as U+2581. */
const WORD = String.raw`[\p{L}\p{M}\p{N}_▁]`;
const NAME = `${WORD}+(?:[:=@+-]${WORD}+)*`;
const anyOf = (shapes: readonly string[], flags = "") => new RegExp(`^(?:${shapes.join("|")})`, `u${flags}`);

/** What begins with each opener, in one form of case and in any. What a plain name in angle brackets is, {@link isMarkerName} says. */
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
/** Whether nothing that could follow what has been read makes it another shape; by what was read last. */
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
/** Words in angle brackets that are in everyday use and no template's: elements of HTML and types of programming languages. */
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
/** Tokens whatever their case, as far back as memstem escapes them. */
const KNOWN = new Set(["s", "bos", "eos", "sop", "eop", "think", "tools", "dblock"]);

/**
 * Whether a name in angle brackets has the shape of a special token's. Everything has but numbers, single letters, words of
 * {@link SPARED} and names as programs give to types and components (`MyButton`).
 */
function isMarkerName(name: string): boolean {
  const small = name.toLowerCase();
  if (KNOWN.has(small)) return true;
  if (/^(?:\p{N}+|\p{L})$/u.test(name) || SPARED.has(name)) return false;
  return !/^(?=\w*[a-z])(?=\w*[A-Z])[A-Za-z][A-Za-z0-9]*$/.test(name);
}

/** Anything but what is printed of ASCII: it may be invisible, white space or a full-width character. */
const OTHER = "[^!-~]";
/**
 * Characters of {@link OPENER_CLASS} at which a marker can begin, by what follows them: most do not come near one. Whatever is found by
 * {@link isMarkerAt} is found by this.
 */
export const CANDIDATES = new RegExp(
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
/** Characters at which a marker can begin, as a class of a regular expression. */
export const OPENER_CLASS = `[${OPENERS}]`;

/** Whether a marker begins at a place, where one of {@link OPENER_CLASS} stands. Backslashes behind any of those change nothing. */
export function isMarkerAt(text: string, at: number): boolean {
  const read = skeletonAt(text, at);
  const shapes = SHAPES[read.charAt(0)];
  if (read.length < 2 || shapes === undefined || isBrokenOff(read)) return false;
  if (shapes.some((one) => one.test(read))) return true;
  const named = NAMED.exec(read);
  return named !== null && isMarkerName(named[1] ?? "");
}

/** Whether another opener came before anything was closed, and too soon for a section's tag, as in most texts that are full of openers. */
function isBrokenOff(read: string): boolean {
  const last = read.charAt(read.length - 1);
  if (read.length > "<memories".length || (last !== "<" && last !== "[")) return false;
  const opener = read.charAt(0);
  return opener === "<" || (opener === "[" && read.charAt(read.length - 2) !== "~");
}

/**
 * The beginning of a text from an opener on, as far as a shape can reach: as {@link seenAs} has it, every run of white space as one space,
 * and without the backslashes behind openers, so that an escaped text reads as the text itself. How often a character is read is bounded,
 * because a second bracket ends what is read from most.
 */
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
