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
