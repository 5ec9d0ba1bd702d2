/**
 * Why a string cannot go into a prompt and a database and come back the same; null where it can. NUL ends a string for some of the C
 * code underneath, and half a surrogate pair has no UTF-8 form: encoders replace it, so that two different strings become one.
 */
export function unstorable(text: string): string | null {
  if (text.includes("\0")) return "must not contain a NUL character";
  if (!text.isWellFormed()) return "must not contain half of a surrogate pair";
  return null;
}

/** The text with U+FFFD in place of every half of a surrogate pair, as UTF-8 encoders would have it. */
export function wellFormed(text: string): string {
  return text.toWellFormed();
}

/** The first reason why a JSON value holds a string that is {@link unstorable}, at any depth and in names too; null where none does. */
export function unstorableWithin(value: unknown): string | null {
  if (typeof value === "string") return unstorable(value);
  if (typeof value !== "object" || value === null) return null;
  for (const [name, field] of Object.entries(value)) {
    const problem = unstorable(name) ?? unstorableWithin(field);
    if (problem !== null) return problem;
  }
  return null;
}

/** Most characters (UTF-16 units) that the text of a memory may have which is added, and by default those of one in a prompt. */
export const MAX_MEMORY_CHARACTERS = 100_000;

/**
 * Why a text cannot be a memory, as the end of a sentence that starts with its name ("must …"); null where it can. Never quotes the
 * text.
 */
export function memoryTextProblem(text: string): string | null {
  if (text.length > MAX_MEMORY_CHARACTERS) return `must have at most ${MAX_MEMORY_CHARACTERS} characters`;
  return foundTextProblem(text);
}

/** The same for the text of a memory that is there already: one that is too long is cut, not refused. */
export function foundTextProblem(text: string): string | null {
  if (text.trim() === "") return "must contain something other than white space";
  return unstorable(text);
}

/** Stands where a text was cut. */
export const CUT_MARK = " […]";

const GRAPHEMES = new Intl.Segmenter("und", { granularity: "grapheme" });
/** A grapheme of more characters is none that anybody reads: the cut goes through it, between two code points. */
const LONGEST_GRAPHEME = 256;

/**
 * A text of at most `max` characters (UTF-16 units): a longer one is cut where a grapheme ends, and {@link CUT_MARK} says so. `max` must be
 * at least the mark's length.
 */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text;
  const most = max - CUT_MARK.length;
  const end = GRAPHEMES.segment(text).containing(most)?.index ?? most;
  return `${text.slice(0, most - end > LONGEST_GRAPHEME ? withoutHalf(text, most) : end)}${CUT_MARK}`;
}

/** The place itself, or the one before where it is in the middle of a surrogate pair. */
function withoutHalf(text: string, at: number): number {
  const next = text.charCodeAt(at);
  return next >= 0xdc00 && next <= 0xdfff ? at - 1 : at;
}
