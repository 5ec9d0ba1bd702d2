/** Kinds of ASCII characters, as the pattern of o200k_base distinguishes them; 0: the end of the text. */
const LOWER = 1;
const UPPER = 2;
const DIGIT = 3;
const SPACE = 4;
const BREAK = 5;
const WHITE = 6;
const OTHER = 7;
const NOT_ASCII = 8;

const KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (/[a-z]/.test(character)) return LOWER;
  if (/[A-Z]/.test(character)) return UPPER;
  if (/\d/.test(character)) return DIGIT;
  if (character === " ") return SPACE;
  if (/[\r\n]/.test(character)) return BREAK;
  return /\s/.test(character) ? WHITE : OTHER;
});

const SLASH = 0x2f;
const APOSTROPHE = 0x27;
/** Capitals and small letters of ASCII differ in this bit. */
const SMALL = 0x20;
const [S, D, M, T, L, V, R, E] = Array.from("sdmtlvre", (letter) => letter.charCodeAt(0));

/** The UTF-16 units of a text: the first `length` of `units`. */
export interface TextUnits {
  readonly units: Uint16Array;
  readonly length: number;
}

/**
 * Where the piece that begins at `from` ends, in the split of o200k_base (`O200K_TOKEN_SPLIT_REGEX` of gpt-tokenizer); −1 where that depends
 * on a character that is not ASCII. Most of what is counted is ASCII, and the pattern takes ten times as long.
 */
export function endOfAsciiPiece(text: TextUnits, from: number): number {
  const first = kindAt(text, from);
  const second = kindAt(text, from + 1);
  if (first === NOT_ASCII || second === NOT_ASCII) return -1;
  if (isLetter(first)) return endOfWord(text, from);
  if (first === DIGIT) return endOfNumber(text, from);
  if (first !== BREAK && isLetter(second)) return endOfWord(text, from + 1);
  if (first === OTHER) return endOfMarks(text, from);
  if (first === SPACE && second === OTHER) return endOfMarks(text, from + 1);
  return endOfWhite(text, from);
}

function kindAt({ units, length }: TextUnits, at: number): number {
  if (at >= length) return 0;
  const unit = units[at] as number;
  return unit < 128 ? (KINDS[unit] as number) : NOT_ASCII;
}

/** The unit there, a capital as its small letter; 0 past the end. */
function smallAt({ units, length }: TextUnits, at: number): number {
  return at < length ? (units[at] as number) | SMALL : 0;
}

function isLetter(kind: number): boolean {
  return kind === LOWER || kind === UPPER;
}

/** Capitals, then small letters, and `'s`, `'ll` and the like. */
function endOfWord(text: TextUnits, from: number): number {
  let at = from;
  while (kindAt(text, at) === UPPER) at++;
  while (kindAt(text, at) === LOWER) at++;
  if (kindAt(text, at) === NOT_ASCII) return -1;
  if (at >= text.length || text.units[at] !== APOSTROPHE) return at;
  // "ſ" and the Kelvin sign are letters of their own: the pattern is not case-insensitive.
  const [first, second] = [smallAt(text, at + 1), smallAt(text, at + 2)];
  if (first === S || first === D || first === M || first === T) return at + 2;
  return (first === L && second === L) || ((first === V || first === R) && second === E) ? at + 3 : at;
}

/** Up to three digits. */
function endOfNumber(text: TextUnits, from: number): number {
  let at = from + 1;
  while (at < from + 3 && kindAt(text, at) === DIGIT) at++;
  return at < from + 3 && kindAt(text, at) === NOT_ASCII ? -1 : at;
}

/** Punctuation, then line breaks and slashes. */
function endOfMarks(text: TextUnits, from: number): number {
  let at = from;
  while (kindAt(text, at) === OTHER) at++;
  if (kindAt(text, at) === NOT_ASCII) return -1;
  while (kindAt(text, at) === BREAK || (at < text.length && text.units[at] === SLASH)) at++;
  return at;
}

/** White space up to its last line break; else all of it, but for a character that the next piece begins with. */
function endOfWhite(text: TextUnits, from: number): number {
  let at = from;
  let behindBreak = -1;
  for (let kind = kindAt(text, at); kind === SPACE || kind === BREAK || kind === WHITE; kind = kindAt(text, at)) {
    at++;
    if (kind === BREAK) behindBreak = at;
  }
  // It may be white space, too.
  if (kindAt(text, at) === NOT_ASCII) return -1;
  if (behindBreak >= 0) return behindBreak;
  return at === text.length || at === from + 1 ? at : at - 1;
}
