/* A memory's text: whether it can be stored, its canonical form, its truncation, and its sentences for comparison. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: vertical tab and form feed are line breaks to some readers of a prompt
const LINE_BREAK = /[\r\u000b\u000c\u0085\u2028\u2029]/;
const LINE_BREAKS = new RegExp(`\\r\\n|${LINE_BREAK.source}`, "g");

/** A memory's text as compared, stored and rendered: line breaks become `\n`, unpaired surrogates U+FFFD; ends are trimmed. */
export function canonicalText(text: string): string {
  const broken = LINE_BREAK.test(text) ? text.replace(LINE_BREAKS, "\n") : text;
  return broken.toWellFormed().trim();
}

/** Why a string would not survive a prompt and the database; null if it would. Half a surrogate pair has no UTF-8 form. */
export function unstorable(text: string): string | null {
  if (text.includes("\0")) return "must not contain a NUL character";
  if (!text.isWellFormed()) return "must not contain half of a surrogate pair";
  return null;
}

/** The first problem of any string in a JSON value, field names included. */
export function unstorableWithin(value: unknown): string | null {
  if (typeof value === "string") return unstorable(value);
  if (typeof value !== "object" || value === null) return null;
  for (const [name, field] of Object.entries(value)) {
    const problem = unstorable(name) ?? unstorableWithin(field);
    if (problem !== null) return problem;
  }
  return null;
}

/** Maximum characters (UTF-16 units) of an added memory, and the default maximum of one in a prompt. */
export const MAX_MEMORY_CHARACTERS = 100_000;

/** Why a text cannot be a memory, as the end of a sentence ("must …"); null if it can. Never quotes the text. */
export function memoryTextProblem(text: string): string | null {
  if (text.length > MAX_MEMORY_CHARACTERS) return `must have at most ${MAX_MEMORY_CHARACTERS} characters`;
  return foundTextProblem(text);
}

/** For a memory from the source: a text that is too long is truncated, not rejected. */
export function foundTextProblem(text: string): string | null {
  if (text.trim() === "") return "must contain something other than white space";
  return unstorable(text);
}

export const CUT_MARK = " […]";

const GRAPHEMES = new Intl.Segmenter("und", { granularity: "grapheme" });
/** Longer graphemes are not real text and may be split between code points. */
const LONGEST_GRAPHEME = 256;

/** Truncates a text to `max` characters (UTF-16 units) at a grapheme's end, with {@link CUT_MARK}, which must fit. */
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

/** A sentence inside quotation marks or brackets is somebody else's words. */
const OPENING = "([{“„«‹「『（［";
const CLOSING = ")]}”»›」』）］";
/** White space must follow `ENDS`; East Asian scripts need none. */
const ENDS = ".!?…";
const FULL_ENDS = "。！？";
const FULL_STOPPED = new Set(
  "mr mrs ms dr prof st jr sr vs etc no nr approx dept inc ltd co corp fig al cf ca bzw usw evtl ggf vgl".split(" "),
);
/** Only these characters can end a sentence or need closing. */
const NOTED = /["([{“„«‹「『（［)\]}”»›」』）］.!?…。！？]/g;
const BULLET = /^[-–—*•·]\s+/;
const AFTER_SENTENCE = " .!…。！";
/** Ignored after a statement. */
const AFTER_STATEMENT = `${AFTER_SENTENCE},;:`;
const QUESTION_MARKS = "?？";
const SAID = /[\p{L}\p{N}\p{S}]/u;
/** Only such a text has several Unicode forms, or white space other than single blanks. */
const MIXED = /[^\x20-\x7e]| {2}/;

/** A text's sentences without letter case, Unicode forms, bullet and final punctuation. No boundary where in doubt. Linear time. */
export function sentencesOf(text: string): readonly string[] {
  const plain = (MIXED.test(text) ? text.normalize("NFC").replace(/\s+/gu, " ") : text).trim();
  const sentences: string[] = [];
  let from = 0;
  let depth = 0;
  let isQuoted = false;
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
  return sentences.map(comparable).filter((sentence) => sentence !== "");
}

/** Whether the character at `at` ends the sentence that begins at `from`. */
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

function comparable(sentence: string): string {
  const bare = withoutEnd(sentence.trim().replace(BULLET, ""));
  if (!SAID.test(bare)) return "";
  return MIXED.test(bare) ? bare.toLowerCase().normalize("NFC") : bare.toLowerCase();
}

/** Without final punctuation; a question keeps one mark. A pattern would try every position. */
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

/** Sentences of a text that others may contain. Bounded, so that searches are linear. */
const MOST_SENTENCES = 3;
const BETWEEN = "\n";

export interface ComparedText {
  /** All its sentences; empty for a text without words. `runs` has it, and each run of up to three sentences. */
  readonly whole: string;
  readonly runs: readonly string[];
  readonly sentences: number;
}

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

export function withoutCut(text: string): string {
  return text.endsWith(CUT_MARK) ? text.slice(0, -CUT_MARK.length) : text;
}
