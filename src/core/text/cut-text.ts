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
