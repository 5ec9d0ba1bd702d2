/*
 * A memory's text: whether it can be stored, its canonical form, cut to a length; and the form in which it is compared with others, by
 * sentences.
 */

// biome-ignore lint/suspicious/noControlCharactersInRegex: vertical tab and form feed are line breaks to some readers of a prompt
const LINE_BREAK = /[\r\u000b\u000c\u0085\u2028\u2029]/;
const LINE_BREAKS = new RegExp(`\\r\\n|${LINE_BREAK.source}`, "g");

/**
 * The canonical form of a memory's text, which is compared, stored and rendered: every kind of line break becomes `\n`, unpaired surrogates
 * become U+FFFD, and white space at the ends is removed. Nothing else changes.
 */
export function canonicalText(text: string): string {
  const broken = LINE_BREAK.test(text) ? text.replace(LINE_BREAKS, "\n") : text;
  return broken.toWellFormed().trim();
}

/**
 * Why a string would not survive a round trip through a prompt and the database; null if it would. NUL terminates C strings. Half of a
 * surrogate pair has no UTF-8 form: encoders replace it, so two different strings become equal.
 */
export function unstorable(text: string): string | null {
  if (text.includes("\0")) return "must not contain a NUL character";
  if (!text.isWellFormed()) return "must not contain half of a surrogate pair";
  return null;
}

/** The first reason why some string in a JSON value is {@link unstorable}, at any depth, field names included; null for none. */
export function unstorableWithin(value: unknown): string | null {
  if (typeof value === "string") return unstorable(value);
  if (typeof value !== "object" || value === null) return null;
  for (const [name, field] of Object.entries(value)) {
    const problem = unstorable(name) ?? unstorableWithin(field);
    if (problem !== null) return problem;
  }
  return null;
}

/** Maximum characters (UTF-16 units) of an added memory's text, and the default maximum of one memory in a prompt. */
export const MAX_MEMORY_CHARACTERS = 100_000;

/**
 * Why a text cannot be a memory, phrased as the end of a sentence whose subject is the field ("must …"); null if it can. Never quotes the
 * text.
 */
export function memoryTextProblem(text: string): string | null {
  if (text.length > MAX_MEMORY_CHARACTERS) return `must have at most ${MAX_MEMORY_CHARACTERS} characters`;
  return foundTextProblem(text);
}

/** The same for a memory that the source holds already: a text that is too long is truncated, not rejected. */
export function foundTextProblem(text: string): string | null {
  if (text.trim() === "") return "must contain something other than white space";
  return unstorable(text);
}

/** Marks where a text was truncated. */
export const CUT_MARK = " […]";

const GRAPHEMES = new Intl.Segmenter("und", { granularity: "grapheme" });
/** Graphemes longer than this are not real text: truncation may split them between two code points. */
const LONGEST_GRAPHEME = 256;

/**
 * Truncates a text to `max` characters (UTF-16 units) at the end of a grapheme, and appends {@link CUT_MARK}. `max` must be at least the
 * mark's length.
 */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text;
  const most = max - CUT_MARK.length;
  const end = GRAPHEMES.segment(text).containing(most)?.index ?? most;
  return `${text.slice(0, most - end > LONGEST_GRAPHEME ? withoutHalf(text, most) : end)}${CUT_MARK}`;
}

/** The offset, or the one before if it would split a surrogate pair. */
function withoutHalf(text: string, at: number): number {
  const next = text.charCodeAt(at);
  return next >= 0xdc00 && next <= 0xdfff ? at - 1 : at;
}

/** Quotation marks and brackets that have a closing form; a sentence inside of them is somebody's words, not the text's. */
const OPENING = "([{“„«‹「『（［";
const CLOSING = ")]}”»›」』）］";
/** Ends a sentence where white space follows; those of East Asian scripts need none. */
const ENDS = ".!?…";
const FULL_ENDS = "。！？";
const FULL_STOPPED = new Set(
  "mr mrs ms dr prof st jr sr vs etc no nr approx dept inc ltd co corp fig al cf ca bzw usw evtl ggf vgl".split(" "),
);
/** What may end a sentence, or have a closing form: no other character is looked at. */
const NOTED = /["([{“„«‹「『（［)\]}”»›」』）］.!?…。！？]/g;
const BULLET = /^[-–—*•·]\s+/;
/** What may stand after a sentence's words; white space is one blank here. */
const AFTER_SENTENCE = " .!…。！";
/** The same where nothing is asked. */
const AFTER_STATEMENT = `${AFTER_SENTENCE},;:`;
const QUESTION_MARKS = "?？";
/** What a sentence has at least one of. */
const SAID = /[\p{L}\p{N}\p{S}]/u;
/** The same characters, as far as they are ASCII. */
const SAID_IN_ASCII = /[A-Za-z0-9$+<=>^`|~]/;
/** Text of which every Unicode normal form is itself, and whose only white space is the blank. */
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/**
 * A text's sentences in a form in which letter case, Unicode's normal forms, white space, a bullet in front and punctuation at the end make
 * no difference; a question keeps its mark. Where a boundary is in doubt there is none: after abbreviations and numbers, inside of
 * quotation marks and brackets, before a small letter. All words of the text are in the sentences, in their order. Linear time.
 */
export function sentencesOf(text: string): readonly string[] {
  const isAscii = PRINTABLE_ASCII.test(text);
  const isSpaced = isAscii && !text.includes("  ");
  const plain = (isSpaced ? text : text.normalize("NFC").replace(/\s+/gu, " ")).trim();
  const sentences: string[] = [];
  let from = 0;
  let depth = 0;
  let isQuoted = false;
  // By itself: an iterator takes a copy of the pattern for every text.
  NOTED.lastIndex = 0;
  while (NOTED.test(plain)) {
    const at = NOTED.lastIndex - 1;
    const character = plain.charAt(at);
    if (character === '"') isQuoted = !isQuoted;
    else if (OPENING.includes(character)) depth++;
    else if (CLOSING.includes(character)) depth--;
    else if (depth === 0 && !isQuoted && endsSentence(plain, at, from)) {
      sentences.push(plain.slice(from, at + 1));
      from = at + 1;
    }
  }
  sentences.push(plain.slice(from));
  return sentences.map((sentence) => comparable(sentence, isAscii)).filter((sentence) => sentence !== "");
}

/** Whether a sentence that begins at `from` ends with the character at `at`. */
function endsSentence(text: string, at: number, from: number): boolean {
  const character = text.charAt(at);
  const next = text.charAt(at + 1);
  if (FULL_ENDS.includes(character)) return !FULL_ENDS.includes(next) && !CLOSING.includes(next);
  if (!ENDS.includes(character) || next !== " ") return false;
  if (/\p{Ll}/u.test(text.charAt(at + 2))) return false;
  if (character !== ".") return true;
  const word = text.slice(Math.max(from, text.lastIndexOf(" ", at) + 1), at);
  return word.length > 1 && !word.includes(".") && !/^\p{N}+$/u.test(word) && !FULL_STOPPED.has(word.toLowerCase());
}

/** ASCII needs neither Unicode's classes nor its normal forms, which take most of the time. */
function comparable(sentence: string, isAscii: boolean): string {
  const bare = withoutEnd(sentence.trim().replace(BULLET, ""));
  if (!(isAscii ? SAID_IN_ASCII : SAID).test(bare)) return "";
  return isAscii ? bare.toLowerCase() : bare.toLowerCase().normalize("NFC");
}

/** A sentence without the punctuation at its end; a question has one mark. By characters: a pattern would try every position. */
function withoutEnd(said: string): string {
  let asked = -1;
  let at = said.length;
  for (; at > 0; at--) {
    const character = said.charAt(at - 1);
    if (QUESTION_MARKS.includes(character)) asked = at - 1;
    else if (!AFTER_SENTENCE.includes(character)) break;
  }
  if (asked >= 0) return `${said.slice(0, asked)}?`;
  while (at > 0 && AFTER_STATEMENT.includes(said.charAt(at - 1))) at--;
  return said.slice(0, at);
}

/** Sentences of a text that is looked for in others. Bounded, so that the search takes time in proportion to the texts. */
const MOST_SENTENCES = 3;
const BETWEEN = "\n";

/** A text in the form in which it is compared with others. */
export interface ComparedText {
  /** All its sentences; empty: the text says nothing in words. */
  readonly whole: string;
  /** The whole, and each run of up to three sentences, which may be another text. */
  readonly runs: readonly string[];
  readonly sentences: number;
}

/** Takes time, and space, in proportion to the text. */
export function comparedText(text: string): ComparedText {
  const sentences = sentencesOf(text);
  const whole = sentences.join(BETWEEN);
  const runs = [whole];
  for (let from = 0; from < sentences.length; from++) {
    const most = Math.min(MOST_SENTENCES, sentences.length - from, sentences.length - 1);
    for (let count = 1; count <= most; count++) runs.push(sentences.slice(from, from + count).join(BETWEEN));
  }
  return { whole, runs, sentences: sentences.length };
}

/** A text without the mark of its cut, as a quote of it has none. */
export function withoutCut(text: string): string {
  return text.endsWith(CUT_MARK) ? text.slice(0, -CUT_MARK.length) : text;
}
